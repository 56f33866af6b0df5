"""WOS from files of the shape of the official distribution, with invented texts."""

import csv
import io
import json
import re
import sys
import zipfile
from collections import Counter
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import openpyxl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import InputError, Taxonomy, read_documents
from hitin.datasets.splits import wos_rows
from hitin.datasets.wos import DOMAINS, ORDER, distinct_names, merged_areas, wos, write_wos
from hitin.datasets.wos_table import Row
from hitin.splitting import SPLITS
from tests.conftest import Run

HEADER = ("Y1", "Y2", "Y", "Domain", "area", "keywords", "Abstract")
ANALOG = "Analog signal processing"
Cells = Sequence[object]


def rows_of(count: int = 50) -> list[Cells]:
    """Rows of three domains with two areas each; names have blanks around them, as in the real table."""
    made: list[Cells] = []
    for number in range(count):
        y1, y2 = number % 3, number // 3 % 2
        domain, area = ("CS ", " Civil", "ECE")[y1], f" area {y1}{y2}  "
        made.append((y1, y2, 2 * y1 + y2, domain, area, "a; b", f"Abstract {number}, of “{area.strip()}”."))
    return made


def changed(rows: list[Cells], row: int, column: str, value: object) -> list[Cells]:
    cells = list(rows[row])
    cells[HEADER.index(column)] = value
    return [*rows[:row], tuple(cells), *rows[row + 1 :]]


def text_of(rows: Iterable[Cells], header: Sequence[str] = HEADER, delimiter: str = "\t") -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows([header, *rows])
    return out.getvalue()


def write_text(path: Path, rows: Iterable[Cells], encoding: str = "utf-8", **options: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text_of(rows, **options).encode(encoding))
    return path


def write_sheet(path: Path, rows: Iterable[Cells], header: Sequence[str] = HEADER) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("Sheet1")
    for row in (header, *rows):
        sheet.append(list(row))
    book.save(path)
    return path


def test_the_spreadsheet_and_its_exports_say_the_same(tmp_path: Path) -> None:
    rows = rows_of()
    expected = wos(write_sheet(tmp_path / "Data.xlsx", rows))
    assert [document.text for document in expected.documents] == [row[6] for row in rows]
    assert [document.labels for document in expected.documents] == [
        (str(row[3]).strip(), str(row[4]).strip()) for row in rows
    ]
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert wos(write_text(tmp_path / "Data.txt", rows, encoding)) == expected
    assert wos(write_text(tmp_path / "Data.csv", rows, delimiter=",")) == expected
    with pytest.raises(InputError, match="--encoding windows-1252"):
        wos(write_text(tmp_path / "Data.txt", rows, "cp1252"))
    assert wos(tmp_path / "Data.txt", encoding="cp1252") == expected


def test_columns_are_found_by_their_names(tmp_path: Path) -> None:
    expected = wos(write_text(tmp_path / "Data.txt", rows_of()))
    header = ("abstract ", *HEADER[:6])
    turned = [(row[6], *row[:6]) for row in rows_of()]
    assert wos(write_text(tmp_path / "turned.txt", turned, header=header)) == expected
    assert wos(write_sheet(tmp_path / "turned.xlsx", turned, header)) == expected
    book = openpyxl.Workbook()  # with a table of strings, and a blank row
    for row in (header, *turned[:20], (), *turned[20:]):
        book.active.append(list(row))
    book.save(tmp_path / "strings.xlsx")
    assert wos(tmp_path / "strings.xlsx") == expected


def test_quotes_tabs_and_line_ends_in_an_abstract_survive(tmp_path: Path) -> None:
    texts = ['He said "no" to it', "a\ttab", "two\nlines", 'all\tof "them"\nat once', '"quoted"']
    rows = rows_of(5)
    for at, text in enumerate(texts):
        rows = changed(rows, at, "Abstract", text)
    for table in (write_text(tmp_path / "Data.txt", rows), write_sheet(tmp_path / "Data.xlsx", rows)):
        assert [document.text for document in wos(table).documents] == texts


@settings(max_examples=30)
@given(st.lists(st.text(alphabet='ab", \t\n', max_size=12), min_size=1, max_size=6))
def test_any_abstract_comes_through_a_quoted_export(texts: list[str]) -> None:
    rows = rows_of(len(texts))
    for at, text in enumerate(texts):
        rows = changed(rows, at, "Abstract", text)
    with TemporaryDirectory() as folder:
        found = wos(write_text(Path(folder) / "Data.txt", rows))
    assert [document.text for document in found.documents] == texts


@pytest.mark.parametrize("end", ["", "\r\n", "\r\n\r\n"])
def test_an_export_that_ends_within_quotes_is_refused_with_the_line(end: str, tmp_path: Path) -> None:
    rows = changed(changed(rows_of(), 2, "Abstract", 'It "is" quoted.'), 49, "Abstract", 'The "last" one, cut here.')
    whole = text_of(rows)
    (tmp_path / "Data.txt").write_text(whole[: whole.rindex(", cut here")] + end, encoding="utf-8", newline="")
    with pytest.raises(InputError, match="a double quote is left open at the end of the file") as caught:
        wos(tmp_path / "Data.txt")
    assert caught.value.place == f"{tmp_path / 'Data.txt'}:51"


def test_an_export_that_quotes_nothing_may_end_with_a_quote_of_its_text(tmp_path: Path) -> None:
    rows = changed(rows_of(), 49, "Abstract", '"So it began')
    lines = ["\t".join(map(str, row)) for row in (HEADER, *rows)]
    (tmp_path / "Data.txt").write_text("\n".join(lines), encoding="utf-8")
    assert wos(tmp_path / "Data.txt").documents[-1].text == '"So it began'


def test_an_export_that_quotes_nothing_is_read_line_by_line(tmp_path: Path) -> None:
    rows = changed(changed(rows_of(5), 1, "Abstract", '"An open quote'), 3, "Abstract", 'said "so" and 5" long')
    lines = ["\t".join(map(str, row)) for row in (HEADER, *rows)]
    (tmp_path / "Data.txt").write_text("\n".join(lines), encoding="utf-8")
    assert [document.text for document in wos(tmp_path / "Data.txt").documents] == [row[6] for row in rows]


def test_characters_that_a_spreadsheet_escapes_are_read(tmp_path: Path) -> None:
    rows = changed(rows_of(5), 0, "Abstract", "one_x000D_\ntwo _x005F_ three")
    assert wos(write_sheet(tmp_path / "Data.xlsx", rows)).documents[0].text == "one\r\ntwo _ three"


def test_the_distribution_may_be_a_folder_or_a_zip(tmp_path: Path) -> None:
    folder = tmp_path / "WebOfScience"
    expected = wos(write_sheet(folder / "Meta-data" / "Data.xlsx", rows_of()))
    assert wos(folder) == wos(folder / "Meta-data") == expected
    packed = tmp_path / "WebOfScience.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("WebOfScience/WOS46985/X.txt", "texts")
        archive.write(folder / "Meta-data" / "Data.xlsx", "WebOfScience/Meta-data/Data.xlsx")
    assert wos(packed) == expected
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:  # as of a page where the files of a set are downloaded
        archive.write(packed, "set/WebOfScience.zip")
    assert wos(tmp_path / "all.zip") == expected
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.writestr("__MACOSX/set/._WebOfScience.zip", "no zip")
        with archive.open("set/WOS5736.zip", "w") as file, zipfile.ZipFile(file, "w") as other:
            other.writestr("X.txt", "texts")
        archive.write(packed, "set/WebOfScience.zip")
    assert wos(tmp_path / "all.zip") == expected
    for others in (("a.zip", "set/WebOfScience.zip"), ("set/WebOfScience.zip", "z.zip")):  # what is not needed
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
            for name in others:
                archive.writestr(name, packed.read_bytes() if name.startswith("set") else b"no zip at all")
        assert wos(tmp_path / "all.zip") == expected
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.writestr("WebOfScience.zip", packed.read_bytes()[:-200])
    with pytest.raises(InputError, match="the zip is damaged or cut short"):
        wos(tmp_path / "none.zip")
    with zipfile.ZipFile(tmp_path / "none.zip", "w") as archive:
        archive.write(tmp_path / "all.zip", "deeper/all.zip")
    with pytest.raises(InputError, match=r"it holds: deeper/all\.zip"):
        wos(tmp_path / "none.zip")
    with zipfile.ZipFile(tmp_path / "text.zip", "w") as archive:
        archive.write(write_text(tmp_path / "export.txt", rows_of()), "Meta-data/Data.txt")
    assert wos(tmp_path / "text.zip") == expected
    (folder / "Meta-data" / "Data.xlsx").unlink()
    write_text(folder / "Meta-data" / "Data.txt", rows_of())
    assert wos(folder) == expected


def test_areas_of_one_code_are_merged_into_the_more_frequent_name(tmp_path: Path, run: Run) -> None:
    rows = rows_of(30)  # five rows of each of six codes
    for row in (6, 12):
        rows = changed(rows, row, "area", "seldom")
    result = run("data", "wos", write_text(tmp_path / "Data.txt", rows), "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    taxonomy = Taxonomy.read(tmp_path / "out" / "taxonomy.tsv")
    assert "seldom" not in taxonomy
    assert len(taxonomy) == 3 + 6
    assert "seldom is area 00 in 2 rows of code 0-0, which has both names" in result.stderr


def test_a_name_stays_until_the_more_frequent_one_of_its_code_has_come() -> None:
    names = ["generator", "generator", "analog", "generator", "analog", "analog", "generator", "analog", "analog"]
    rows = [Row(0, 1, 9, 0, "ECE", name, "") for name in names]
    assert merged_areas(rows) == ["generator"] * 2 + ["analog"] * 7


codes = st.tuples(st.integers(0, 2), st.integers(0, 1))


@given(st.lists(st.tuples(codes, st.sampled_from(["a", "b", "c"])), min_size=1, max_size=30))
def test_areas_are_merged_as_a_slow_loop_does_it_and_of_two_the_first_is_taken(
    given_names: list[tuple[tuple[int, int], str]],
) -> None:
    rows = [Row(0, *code, 0, f"D{code[0]}", name, "") for code, name in given_names]
    for at, found in enumerate(merged_areas(rows)):
        so_far = dict.fromkeys(row.area for row in rows[: at + 1] if row.code == rows[at].code)
        counts = [sum((row.domain, row.area) == (rows[at].domain, name) for row in rows) for name in so_far]
        assert found == [*so_far][counts.index(max(counts))]


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["A", "x", "y", "z"])), min_size=1))
def test_labels_stay_distinct_and_only_names_that_clash_are_changed(labels: list[tuple[str, str]]) -> None:
    names = distinct_names(labels)
    domains = {domain for domain, _ in labels}
    everything = [*names.values(), *domains]
    assert len(everything) == len(set(everything)) == len(set(labels)) + len(domains)
    for (domain, area), name in names.items():
        is_alone = area not in domains and sum(other == area for _, other in set(labels)) == 1
        assert name == (area if is_alone else f"{area} ({domain})")


def test_an_area_of_two_domains_is_two_labels(tmp_path: Path) -> None:
    rows = [
        tuple("Depression" if str(cell).strip() in ("area 00", "area 10") else cell for cell in row)
        for row in rows_of()
    ]
    found = wos(write_text(tmp_path / "Data.txt", rows))
    assert {"Depression (CS)", "Depression (Civil)"} < set(found.taxonomy.labels)
    assert found.taxonomy.is_tree
    assert "the area Depression of CS is called Depression (CS)" in found.notes


def test_files_hold_the_splits_of_the_recipe(tmp_path: Path) -> None:
    found = wos(write_text(tmp_path / "Data.txt", rows_of()))
    files = write_wos(tmp_path / "out", found)
    assert files.documents == (32, 8, 10)
    for split, rows in zip(SPLITS, wos_rows(50), strict=True):
        written = [document.id for document in read_documents(tmp_path / "out" / f"{split}.jsonl")]
        assert written == [str(row + 1) for row in rows.tolist()]
    assert Taxonomy.read(files.taxonomy) == found.taxonomy
    assert found.taxonomy.level_sizes == (3, 6)


def test_a_part_of_the_download_is_named_as_such(tmp_path: Path, run: Run) -> None:
    table = write_text(tmp_path / "Data.txt", rows_of())
    result = run("data", "wos", table, "--out", tmp_path / "out")
    assert result.exit_code == 0, result.output
    assert "warning: 50 rows, where WOS-46985 has 46,985" in result.stderr
    result = run("data", "wos", table, "--out", tmp_path / "out", "--check", "--overwrite")
    assert result.exit_code == 1
    assert "Not what the paper describes: labels, training documents" in result.stdout
    result = run("data", "wos", table, "--out", tmp_path / "out", "--check", "--json", "--overwrite")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["documents"] == {"train": 32, "val": 8, "test": 10}
    assert {row["what"]: row["agrees"] for row in told["check"]}["depth"] is True
    assert told["notes"][0].startswith("50 rows, where WOS-46985 has 46,985")


def whole_table(shared: Path) -> list[Cells]:
    """46,985 invented rows with the published labels, in the order in which these first come.

    Two areas share a code, the less frequent one coming first, and one has another name in some of its rows.
    """
    taxonomy = Taxonomy.read(shared / "hierarchies" / "wos.taxonomy")
    rows: list[Cells] = []
    for y1, (domain, count) in enumerate(DOMAINS.items()):
        areas = [taxonomy.labels[area] for area in taxonomy.children(taxonomy.index(domain))]
        for at in range(count):
            y2 = at % len(areas)
            area = {"Electrical generator": ANALOG, "Electric motor": "Satellite radio"}.get(areas[y2], areas[y2])
            area = area if at % 3 == 0 and at > 99 else areas[y2]
            code = areas.index("Electrical generator") if area == ANALOG else y2
            rows.append((y1, code, 100 * y1 + y2, domain, area, "", f"{domain} {at}"))
    return rows


def test_the_order_is_that_of_the_published_taxonomy(shared: Path) -> None:
    _, *lines = (shared / "hierarchies" / "wos.taxonomy").read_text(encoding="utf-8").splitlines()
    assert blake2b("\n".join(lines).encode(), digest_size=8).hexdigest() == ORDER
    assert [line.split("\t")[0] for line in lines] == list(DOMAINS)
    assert sum(DOMAINS.values()) == 46_985


def test_a_whole_table_passes_the_check_and_a_reordered_or_changed_one_is_warned_of(
    shared: Path, tmp_path: Path, run: Run
) -> None:
    rows = whole_table(shared)
    result = run("data", "wos", write_text(tmp_path / "Data.txt", rows), "--out", tmp_path / "out", "--check")
    assert result.exit_code == 0, result.output
    assert result.stdout.endswith("Every count is that of the paper.\n")
    assert "141 labels, 7 > 134 by level" in result.stdout
    assert [line.split(" in ")[0] for line in result.stderr.splitlines()] == [
        f"note: Electrical generator is {ANALOG}",
        "note: Satellite radio is Electric motor",
    ]

    by_domain = sorted(rows, key=lambda row: str(row[3]))
    result = run("data", "wos", write_text(tmp_path / "Data.txt", by_domain), "--out", tmp_path / "sorted", "--check")
    assert result.exit_code == 0  # for the order is known at second hand
    assert "warning: the labels do not first come in the order of the published taxonomy" in result.stderr
    assert result.stdout.endswith("But there are warnings, which are of what no count tells.\n")

    other = [*rows[:-1], rows[0]]  # a row lost, and one twice
    found = wos(write_text(tmp_path / "Data.txt", other))
    assert found.warnings == ("another number of rows than WOS-46985 has of CS, Psychology: the table was changed",)


def test_a_column_sorted_without_the_others_is_refused_with_the_row(tmp_path: Path) -> None:
    rows = rows_of()
    domains = sorted(str(row[3]) for row in rows)
    rows = [(*row[:3], domain, *row[4:]) for row, domain in zip(rows, domains, strict=True)]
    with pytest.raises(InputError, match="the columns do not belong together") as caught:
        wos(write_text(tmp_path / "Data.txt", rows))
    assert caught.value.line is not None
    numbers = sorted(str(row[2]) for row in rows_of())
    moved = [(*row[:2], number, *row[3:]) for row, number in zip(rows_of(), numbers, strict=True)]
    assert any("is the column intact?" in said for said in wos(write_text(tmp_path / "Data.txt", moved)).warnings)


def test_a_code_of_two_numbers_is_the_table_s_own_and_no_reason_to_warn(tmp_path: Path) -> None:
    rows = rows_of()
    for row in (6, 12):
        rows = changed(rows, row, "Y", 99)
    assert [said for said in wos(write_text(tmp_path / "Data.txt", rows)).warnings if "Y" in said] == []


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("Y1", "", "Y1 is '', not a whole number"),
        ("Y2", "2.5", "Y2 is '2.5', not a whole number"),
        ("Y", "inf", "Y is 'inf', not a whole number"),
        ("Domain", " ", "Domain is ' ', not a name"),
        ("area", "#REF!", "area is '#REF!', not a name"),
    ],
)
def test_a_spoilt_cell_is_told_with_its_row(tmp_path: Path, column: str, value: str, words: str) -> None:
    rows = changed(rows_of(), 3, column, value)
    with pytest.raises(InputError, match="not a") as caught:
        wos(write_text(tmp_path / "Data.txt", rows))
    assert words in caught.value.message
    assert caught.value.place == f"{tmp_path / 'Data.txt'}:5"


@pytest.mark.parametrize(
    ("abstract", "words"),
    [
        ("  ", "document 4 has no abstract"),
        ("#NAME?", "document 4 has an error of a spreadsheet program"),
        ("#######", "document 4 has an error of a spreadsheet program"),
        ("x" * 32_767, "document 4 has an abstract cut"),
        ("x" * 32_768, "document 4 has an abstract longer than a cell may be"),
    ],
)
def test_an_abstract_that_is_no_text_any_more_is_told_and_its_row_stays(
    tmp_path: Path, abstract: str, words: str
) -> None:
    found = wos(write_text(tmp_path / "Data.txt", changed(rows_of(), 3, "Abstract", abstract)))
    assert len(found.documents) == 50
    assert any(words in said for said in found.warnings)


def test_where_the_table_may_be_is_told(tmp_path: Path) -> None:
    def told(path: Path) -> str:
        with pytest.raises(InputError) as caught:
            wos(path)
        return str(caught.value)

    folder = tmp_path / "above" / "WebOfScience"
    write_sheet(folder / "Meta-data" / "Data.xlsx", rows_of())
    (folder / "WOS46985").mkdir()
    assert f"Give {folder}" in told(tmp_path / "above")
    assert f"Give {folder}" in told(folder / "WOS46985")
    packed = tmp_path / "packed"
    packed.mkdir()
    (packed / "WebOfScience.tar.gz").write_bytes(b"")
    assert "still packed in WebOfScience.tar.gz" in told(packed)
    assert "Unpack it, and give the folder." in told(packed / "WebOfScience.tar.gz")
    (packed / "Data.xls").write_bytes(bytes.fromhex("D0CF11E0A1B11AE1"))
    assert "Save the sheet as .xlsx" in told(packed / "Data.xls")
    (packed / "Data.xls").rename(packed / "Data.xlsx")
    assert "an old spreadsheet, or one with a password" in told(packed / "Data.xlsx")


def test_spreadsheets_of_other_kinds_are_told(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    book.create_chartsheet()
    book.remove(book.worksheets[0])
    book.save(tmp_path / "chart.xlsx")
    with pytest.raises(InputError, match="damaged or cut short"):
        wos(tmp_path / "chart.xlsx")
    table = write_sheet(tmp_path / "Data.xlsx", rows_of()[1:], header=[str(cell) for cell in rows_of()[0]])
    with pytest.raises(InputError, match="The first row of the first sheet names them"):
        wos(table)
    locked = bytearray(table.read_bytes())
    for sign, at in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        for found in re.finditer(sign, bytes(locked)):
            locked[found.start() + at] |= 1
    table.write_bytes(locked)
    with pytest.raises(InputError, match="encrypted"):
        wos(table)


def test_a_table_in_a_zip_is_told_of_by_the_name_of_the_zip(tmp_path: Path) -> None:
    for name, rows in (("spoilt", changed(rows_of(), 3, "Domain", "")), ("whole", rows_of())):
        write_text(tmp_path / "Data.txt", rows)
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(tmp_path / "Data.txt", "Meta-data/Data.txt")
    with pytest.raises(InputError, match="not a name") as caught:
        wos(tmp_path / "spoilt.zip")
    assert caught.value.place == f"{tmp_path / 'spoilt.zip'}:5"
    data = bytearray((tmp_path / "whole.zip").read_bytes())
    data[200] ^= 0xFF
    (tmp_path / "whole.zip").write_bytes(data)
    with pytest.raises(InputError, match="the zip is damaged or cut short") as caught:
        wos(tmp_path / "whole.zip")
    assert caught.value.file == str(tmp_path / "whole.zip")


def test_documents_are_told_of_by_the_ids_they_are_written_with(tmp_path: Path) -> None:
    rows = changed(changed(rows_of(), 1, "Abstract", "one\ntwo\nthree"), 3, "Abstract", "")
    for table in (write_text(tmp_path / "Data.txt", rows), write_sheet(tmp_path / "Data.xlsx", rows)):
        found = wos(table)
        assert [document.id for document in found.documents if not document.text] == ["4"]
        assert any("document 4 has no abstract" in said for said in found.warnings)


def test_an_empty_cell_of_a_spreadsheet_is_an_empty_abstract(tmp_path: Path) -> None:
    found = wos(write_sheet(tmp_path / "Data.xlsx", changed(rows_of(), 49, "Abstract", None)))
    assert found.documents[49].text == ""
    assert any("document 50 has no abstract" in said for said in found.warnings)


def test_wrong_files_are_named_as_such(tmp_path: Path, run: Run) -> None:
    def error(path: Path) -> str:
        result = run("data", "wos", path, "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert "Traceback" not in result.stderr
        assert not (tmp_path / "out").exists()
        return result.stderr

    assert "there is no such file" in error(tmp_path / "nothing")
    only_numbers = tmp_path / "numbers"
    write_text(only_numbers / "WOS46985" / "X.txt", [])
    assert "X.txt and the like hold texts and numbers" in error(only_numbers)
    header = tuple(name for name in HEADER if name != "Domain")
    for table in (
        write_text(tmp_path / "few.txt", [row[:6] for row in rows_of()], header=header),
        write_sheet(tmp_path / "few.xlsx", [row[:6] for row in rows_of()], header),
    ):
        assert "not the table of WOS: no column is called Domain; there are: Y1" in error(table)
    assert "no rows" in error(write_text(tmp_path / "empty.txt", []))
    assert "no rows" in error(write_sheet(tmp_path / "empty.xlsx", []))
    ragged = text_of(rows_of()).replace("\ta; b\t", "\t", 1)
    (tmp_path / "ragged.txt").write_text(ragged, encoding="utf-8")
    assert "ragged.txt:2: the row has 6 columns" in error(tmp_path / "ragged.txt")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "no")
    assert "neither a spreadsheet nor a zip with Meta-data/Data.xlsx" in error(tmp_path / "other.zip")


def test_a_spreadsheet_that_is_cut_short_is_told(tmp_path: Path) -> None:
    whole = write_sheet(tmp_path / "Data.xlsx", rows_of(2_000)).read_bytes()
    for size in (4, 100, len(whole) // 2, len(whole) - 10):
        (tmp_path / "cut.xlsx").write_bytes(whole[:size])
        with pytest.raises(InputError, match="damaged or cut short"):
            wos(tmp_path / "cut.xlsx")
    with zipfile.ZipFile(tmp_path / "Data.xlsx") as packed:
        parts = {name: packed.read(name) for name in packed.namelist()}
    for name in ("xl/worksheets/sheet1.xml", "xl/workbook.xml"):
        with zipfile.ZipFile(tmp_path / "cut.xlsx", "w") as archive:
            for part, content in parts.items():
                archive.writestr(part, content[: len(content) // 2] if part == name else content)
        with pytest.raises(InputError, match="damaged or cut short"):
            wos(tmp_path / "cut.xlsx")


def test_an_error_is_told_to_programs_too(tmp_path: Path, run: Run) -> None:
    result = run("data", "wos", write_text(tmp_path / "Data.txt", changed(rows_of(), 7, "area", "")), "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)
    assert told["exit_code"] == 2
    assert "Data.txt:9" in json.dumps(told["problems"])


def test_a_missing_library_is_told_with_its_extra(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_sheet(tmp_path / "Data.xlsx", rows_of())
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    result = run("data", "wos", table, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "pip install 'hitin[data]'" in result.stderr


def test_the_doctor_finds_what_was_written_fit_to_train_on(tmp_path: Path, run: Run) -> None:
    files = write_wos(tmp_path / "out", wos(write_text(tmp_path / "Data.txt", rows_of())))
    result = run("check", files.taxonomy, files.train, files.val, files.test, "--json")
    assert result.exit_code == 0, result.output
    assert Counter(split["documents"] for split in json.loads(result.stdout)["splits"]) == Counter(files.documents)


def test_help_shows_examples(run: Run) -> None:
    assert "hitin data wos WebOfScience --out wos --check" in run("data", "wos", "--help").stdout

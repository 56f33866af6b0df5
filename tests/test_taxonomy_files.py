"""Taxonomy files: every format read, written, recognised; and errors that name file, line and remedy."""

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitin import InputError, InputWarning, Taxonomy
from hitin.taxonomy.reading import encoding_beside, read_taxonomy
from tests.conftest import Write
from tests.strategies import NAMES, PLAIN_NAMES, edge_lists, taxonomies

HEALTH = Taxonomy.from_paths([["Health", "Injury"], ["Health", "Diet"], ["Sport", "Football"]])

FILES = {
    "hiagm.tsv": "Root\tHealth\tSport\nHealth\tInjury\tDiet\nSport\tFootball\n",
    "any_order.tsv": "Sport\tFootball\nHealth\tInjury\tDiet\nRoot\tHealth\tSport\n",
    "crlf.tsv": "Root\tHealth\tSport\r\nHealth\tInjury\tDiet\r\nSport\tFootball\r\n",
    "trailing_tabs.tsv": "Root\tHealth\tSport\t\nHealth\tInjury\tDiet\t\t\nSport\tFootball\t\n\n",
    "blanks.tsv": "Root\t Health\tSport \n Health \tInjury\tDiet\nSport\t Football\n",
    "edges.tsv": "Root\tHealth\nRoot\tSport\nHealth\tInjury\nHealth\tDiet\nSport\tFootball\n",
    "no_root.tsv": "Health\tInjury\nHealth\tDiet\nSport\tFootball",
    "header.tsv": "parent\tchild\nHealth\tInjury\nHealth\tDiet\nSport\tFootball\n",
    "edges.csv": "Health,Injury\nHealth,Diet\nSport,Football\n",
    "header.csv": "parent,child\n,Health\n,Sport\nHealth,Injury\nHealth,Diet\nSport,Football\n",
    "more_columns.csv": 'id,Child,Parent\n1,Injury,Health\n2,"Diet",Health\n3,Football,Sport\n',
    "empty_rows.csv": 'parent,child\n,\nHealth,Injury\n"",""\nHealth,Diet\n""\nSport,Football\n,,\n',
    "semicolons.csv": "parent;child\nHealth;Injury\nHealth;Diet\nSport;Football\n",
    "nested.json": '{"Health": {"Injury": {}, "Diet": {}}, "Sport": {"Football": null}}',
    "lists.json": '{"Health": ["Injury", "Diet"], "Sport": ["Football"]}',
    "twice.json": '{"Health": {"Injury": {}}, "Sport": ["Football"], "Health": {"Diet": {}}}',
    "named.json": '[{"name": "Health", "children": [{"name": "Injury"}, {"name": "Diet"}]},'
    ' {"label": "Sport", "children": ["Football"]}]',
    "turned.tsv": "child\tparent\nInjury\tHealth\nDiet\tHealth\nFootball\tSport\n",
    "counts.tsv": "\nparent\tchild\tcount\nHealth\tInjury\t12\nHealth\tDiet\t3\nSport\tFootball\t1\n",
    "quoted.tsv": '"parent"\t"child"\n"Health"\t"Injury"\n"Health"\t"Diet"\n"Sport"\t"Football"\n',
    "source.csv": "Source,Target\nHealth,Injury\nHealth,Diet\nSport,Football\n",
    "remark.tsv": "# version 3\nHealth\tInjury\tDiet\nSport\tFootball\n",
    "old_mac.tsv": "Root\tHealth\tSport\rHealth\tInjury\tDiet\rSport\tFootball\r",
    "old_mac.txt": "Health > Injury\rHealth > Diet\rSport > Football",
    "ids.json": '[{"id": "Health", "children": [{"id": "Injury"}, {"id": "Diet"}]},'
    ' {"id": "Sport", "children": ["Football"]}]',
    "pairs.json": '[{"parent": null, "child": "Health"}, {"parent": "Health", "child": "Injury"},'
    ' {"parent": "Health", "child": "Diet"}, {"parent": "Sport", "child": "Football"}]',
    "table.json": '[{"id": 1, "name": "Health", "parent": null}, {"id": 2, "name": "Injury", "parent": 1},'
    ' {"id": 3, "name": "Diet", "parent": 1}, {"id": 4, "name": "Sport", "parent": ""},'
    ' {"id": 5, "name": "Football", "parent": 4}]',
    "numbered_top.json": '[{"id": 1, "name": "Health", "parent_id": 0}, {"id": 2, "name": "Injury", "parent_id": 1.0},'
    ' {"id": 3, "name": "Diet", "parent_id": "1"}, {"id": 4, "name": "Sport", "parent_id": -1},'
    ' {"id": 5, "name": "Football", "parent_id": "Sport"}]',
    "bare_top.json": '[{"id": 1, "name": "Health"}, {"id": 2, "name": "Injury", "parent": 1},'
    ' {"id": 3, "name": "Diet", "parent": 1}, {"id": 4, "name": "Sport"}, {"id": 5, "name": "Football", "parent": 4}]',
    "rooted_table.json": '[{"id": 0, "name": "Root", "parent": null}, {"id": 1, "name": "Health", "parent": 0},'
    ' {"id": 4, "name": "Sport", "parent": "Root"}, {"id": 2, "name": "Injury", "parent": 1},'
    ' {"id": 3, "name": "Diet", "parent": 1}, {"id": 5, "name": "Football", "parent": 4}]',
    "names_alone.json": '[{"name": "Injury", "parent": "Health"}, {"name": "Diet", "parent": "Health"},'
    ' {"name": "Health", "parent": ""}, {"name": "Football", "parent": "Sport"}, {"name": "Sport", "parent": "Root"}]',
    "nested_with_parents.json": '[{"name": "Health", "parent": "null", "children": [{"name": "Injury"}, '
    '{"name": "Diet"}]}, {"name": "Sport", "parent": "null", "children": [{"name": "Football", "parent": "Sport"}]}]',
    "arrows.txt": "Health -> Injury\nHealth -> Diet\nSport -> Football\n",
    "late.txt": "Health\n" * 60 + "Health--Injury\nHealth--Diet\nSport--Football\n",
    "paths.txt": "Health > Injury\nHealth > Diet\nSport > Football\n",
    "inner_too.txt": "# version 3\nHealth\nHealth > Injury\nHealth > Diet\nSport\nSport > Football\n",
    "several_marks.txt": "Health>Injury\nHealth > Diet\nSport -> Football\nSport\nRoot > Sport\n",
    "dashes.txt": "Health--Injury\nHealth--Diet\nSport--Football\n",
    "rooted.txt": "Root > Health > Injury\nRoot > Health > Diet\nRoot > Sport > Football\n",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_is_recognised_and_read_alike(name: str, write: Write) -> None:
    assert Taxonomy.read(write(name, FILES[name])) == HEALTH


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_files_with_a_byte_order_mark_are_read_without_fuss(encoding: str, write: Write) -> None:
    for name in ("hiagm.tsv", "header.csv", "nested.json", "paths.txt"):
        assert Taxonomy.read(write(name, FILES[name].encode(encoding))) == HEALTH


def test_an_encoding_can_be_named(write: Write) -> None:
    path = write("latin.tsv", "Root\tGemüse\n".encode("latin-1"))
    assert Taxonomy.read(path, encoding="latin-1").labels == ("Gemüse",)


def test_a_separator_can_be_named(write: Write) -> None:
    path = write("slashes.txt", "Health/Injury\nHealth/Diet\nSport/Football\n")
    assert Taxonomy.read(path, separator="/") == HEALTH
    tabs = write("tabs.txt", "Health\tInjury\nHealth\tDiet\nSport\tFootball\n")
    assert Taxonomy.read(tabs, format="paths", separator="\t") == HEALTH


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.json"])
def test_a_separator_that_is_for_the_documents_alone_does_not_change_how_a_taxonomy_is_read(
    tmp_path: Path, name: str
) -> None:
    HEALTH.write(tmp_path / name)
    assert Taxonomy.read(tmp_path / name, separator="/") == HEALTH


def test_commas_in_names_do_not_make_a_semicolon_file_a_comma_file(write: Write) -> None:
    path = write("semi.csv", "Health, Care;Injury\nHealth, Care;Diet\n")
    assert Taxonomy.read(path).labels == ("Health, Care", "Injury", "Diet")


def test_children_called_source_and_target_are_no_header(write: Write) -> None:
    path = write("t.tsv", "Root\tSource\tTarget\tparent\tchild\n")
    assert Taxonomy.read(path).labels == ("Source", "Target", "parent", "child")
    family = write("family.tsv", "Family\tParent\tChild\nParent\tMother\tFather\n")
    assert Taxonomy.read(family).labels == ("Family", "Parent", "Child", "Mother", "Father")
    taxonomy = Taxonomy.from_edges([(None, "parent"), (None, "child")])
    for name in ("t.tsv", "t.csv"):
        taxonomy.write(path.with_name(name), root="Top")
        assert Taxonomy.read(path.with_name(name), root="Top") == taxonomy


def test_a_label_that_begins_with_a_hash_is_no_remark(write: Write) -> None:
    assert Taxonomy.read(write("a.txt", "#metoo > support\n")).labels == ("#metoo", "support")
    assert Taxonomy.read(write("b.txt", "#metoo\nother\n")).labels == ("#metoo", "other")


def test_nested_json_and_paths_number_a_dag_alike(write: Write) -> None:
    nested = Taxonomy.read(write("t.json", '{"A": {"M": {"X": {"Q": {}}}}, "B": {"X": {"R": {}}}}'))
    assert nested == Taxonomy.read(write("t.txt", "A > M > X > Q\nB > X > R\n"))


def test_links_keep_pointing_and_pipes_stay_pipes(tmp_path: Path) -> None:
    (tmp_path / "link.tsv").symlink_to("real.tsv")
    HEALTH.write(tmp_path / "link.tsv")
    assert (tmp_path / "link.tsv").is_symlink()
    assert Taxonomy.read(tmp_path / "real.tsv") == HEALTH
    HEALTH.write("/dev/null")
    assert not Path("/dev/null").is_file()
    long = tmp_path / ("x" * 250 + ".tsv")
    HEALTH.write(long)
    assert Taxonomy.read(long) == HEALTH


def test_numbers_quotes_and_emoji_are_names_as_given(write: Write) -> None:
    path = write("odd.tsv", 'Root\t1\t2.0\n1\t"quoted"\t👩‍⚕️ care\n')
    assert Taxonomy.read(path).labels == ("1", "2.0", '"quoted"', "👩‍⚕️ care")
    assert Taxonomy.read(write("numbers.json", '{"1": [2, 3]}')).labels == ("1", "2", "3")


def test_a_line_with_one_name_declares_a_label(write: Write) -> None:
    assert Taxonomy.read(write("lone.tsv", "Root\tA\nB\n")).labels == ("A", "B")
    assert Taxonomy.read(write("flat.txt", "A\nB\n")).labels == ("A", "B")


def test_a_duplicate_edge_is_a_warning_that_names_its_line(write: Write) -> None:
    path = write("twice.tsv", "Root\tA\nA\tB\nA\tB\tC\n")
    with pytest.warns(InputWarning, match=r"twice\.tsv:3: the edge A > B was given before"):
        taxonomy = Taxonomy.read(path)
    assert taxonomy.labels == ("A", "B", "C")


def test_homonyms_are_merged_or_separate_and_counted(write: Write) -> None:
    path = write("paths.txt", "Health > Injury\nSport > Injury\nInjury\nSport > Football\n")
    merged = read_taxonomy(path)
    assert (merged.homonym_policy, merged.homonyms) == ("merge", ["Injury"])
    assert merged.taxonomy.labels == ("Health", "Sport", "Injury", "Football")
    separate = read_taxonomy(path, homonyms="separate")
    assert (separate.homonym_policy, separate.homonyms) == ("separate", ["Injury"])
    assert "Sport > Injury" in separate.taxonomy
    nested = write("nested.json", '{"Health": ["Injury"], "Sport": ["Injury"]}')
    assert read_taxonomy(nested, homonyms="separate").taxonomy.labels[2:] == ("Health > Injury", "Sport > Injury")
    assert read_taxonomy(write("edges.tsv", "A\tC\nB\tC\n")).homonym_policy is None


def test_in_a_table_with_ids_a_name_is_one_label_or_one_for_each_id(write: Write) -> None:
    table = (
        '[{"id": 1, "name": "Books", "parent": 0}, {"id": 3, "name": "Other", "parent": 1},'
        ' {"id": 4, "name": "Other", "parent": 2}, {"id": 2, "name": "Music", "parent": 0},'
        ' {"id": 5, "name": "Music", "parent": 4}]'
    )
    path = write("table.json", table)
    separate = read_taxonomy(path, homonyms="separate")
    assert separate.taxonomy == Taxonomy.from_paths(
        [["Books", "Other"], ["Music", "Other", "Music"]], homonyms="separate"
    )
    assert (separate.homonym_policy, sorted(separate.homonyms)) == ("separate", ["Music", "Other"])
    with pytest.raises(InputError, match="Music > Other > Music") as caught:
        read_taxonomy(path)
    assert "--homonyms separate" in str(caught.value.remedy)
    merged = read_taxonomy(write("merged.json", table[: table.index(', {"id": 5')].strip() + "]"))
    assert merged.taxonomy == Taxonomy.from_edges([("Books", "Other"), ("Music", "Other")])
    assert merged.homonyms == ["Other"]


def test_an_id_with_several_parents_is_one_label_under_all_of_them(write: Write) -> None:
    lists = (
        '[{"id": 1, "name": "A", "parents": []}, {"id": 2, "name": "B", "parents": []},'
        ' {"id": 3, "name": "X", "parents": [1, 2]}, {"id": 4, "name": "Y", "parents": [2]}]'
    )
    rows = (
        '[{"id": 3, "name": "X", "parent": 1}, {"id": 1, "name": "A", "parent": null},'
        ' {"id": 2, "name": "B", "parent": null}, {"id": 3, "name": "X", "parent": 2},'
        ' {"id": 4, "name": "Y", "parent": 2}]'
    )
    for table in (lists, rows):
        path = write("table.json", table)
        assert Taxonomy.read(path) == Taxonomy.from_edges([("A", "X"), ("B", "X"), ("B", "Y")])
        called = Taxonomy.from_edges([("A", "A > X"), ("B", "A > X"), ("B", "B > Y")])
        assert Taxonomy.read(path, homonyms="separate") == called


@given(count_and_edges=edge_lists(tree=True))
def test_a_tree_as_a_table_of_ids_is_the_tree_of_its_paths(
    count_and_edges: tuple[int, list[tuple[int, int]]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    count, edges = count_and_edges
    above = {child: parent for parent, child in edges}
    numbers = [*above, *(number for number in range(count) if number not in above)]  # children before parents, too
    table = [{"id": f"i{each}", "name": each % 3, "parent": f"i{above.get(each, -1)}"} for each in numbers]
    paths: dict[int, tuple[int, ...]] = {-1: ()}
    for each in sorted(numbers):
        paths[each] = (*paths[above.get(each, -1)], each % 3)
    file = tmp_path_factory.getbasetemp() / "ids.json"
    file.write_text(json.dumps(table).replace('"i-1"', "-1"))
    read = Taxonomy.read(file, homonyms="separate")
    built = Taxonomy.from_paths([paths[each] for each in numbers], homonyms="separate")
    assert sorted(read.labels) == sorted(built.labels)
    assert read.level_sizes == built.level_sizes


BROKEN = {
    "a label above one of its name": (
        "t.json",
        '[{"id": 1, "name": "Books", "parent": null}, {"id": 2, "name": "Books", "parent": 1}]',
        ["t.json", "'Books' is its own parent", "--homonyms separate"],
    ),
    "a parent that is not there": (
        "t.json",
        '[{"id": 1, "name": "Books", "parent_id": 0}, {"id": 2, "name": "Fiction", "parent_id": 99}]',
        ["t.json", "entry 2, 'Fiction',", "neither an id nor a name", "99", "Add an entry"],
    ),
    "a parent's name that is not there": (
        "t.json",
        '[{"name": "Books", "parent": null}, {"name": "Fiction", "parent": "Boks"}]',
        ["t.json", "entry 2, 'Fiction',", "'Boks'", "null where"],
    ),
    "a parent's name that several have": (
        "t.json",
        '[{"id": 1, "name": "A", "parent": 0}, {"id": 2, "name": "A", "parent": 0},'
        ' {"id": 3, "name": "B", "parent": "A"}]',
        ["t.json", "entry 3, 'B',", "several entries: 'A'", "Write the parent's id"],
    ),
    "an id of two names": (
        "t.json",
        '[{"id": 1, "name": "A", "parent": 0}, {"id": 1, "name": "B", "parent": 0}]',
        ["t.json", "entry 2, 'B', has the id '1', which is that of 'A'"],
    ),
    "a cycle of ids": (
        "t.json",
        '[{"id": 1, "name": "A", "parent": 2}, {"id": 2, "name": "B", "parent": 1}]',
        ["t.json", "B > A > B", "Remove one"],
    ),
    "cycle": ("t.tsv", "A\tB\nB\tC\nC\tA\n", ["t.tsv:", "cycle", "A > B > C > A", "Remove one"]),
    "path cycle": ("t.txt", "A > B\nB > A\n", ["t.txt:", "A > B > A", "--homonyms separate"]),
    "root cycle": ("t.tsv", "Root\tPlant\nPlant\tRoot\n", ["Root > Plant > Root", "--root"]),
    "self-loop": ("t.tsv", "Root\tA\nA\tB\nB\tB\n", ["t.tsv:3", "'B' is its own parent"]),
    "path self-loop": ("t.txt", "A > C50\nA > C50 > C50\n", ["t.txt:2", "'C50' is its own parent"]),
    "ragged row": ("t.csv", "A,B\nA,B,C\n", ["t.csv:2", "3 columns where 2", "double quotes"]),
    "ragged row below a header": ("t.csv", "parent,child\nA\n", ["t.csv:2", "1 column where 2"]),
    "empty name in a path": ("t.txt", "A > B\nA > > C\n", ["t.txt:2", "empty", "--separator"]),
    "broken JSON": ("t.json", '{"A": {}\n, "B" {}}', ["t.json:2", "JSON is broken", "column"]),
    "documents in place of a taxonomy": (
        "t.jsonl",
        '{"text": "a", "label": "b"}\n{"text": "a", "label": "b"}\n',
        ["t.jsonl:2", "Documents come after the taxonomy"],
    ),
    "a label that is no name": ("t.json", '{"A": [true]}', ["t.json", "text or a number, not True"]),
    "only a root": ("t.tsv", "Root\n", ["t.tsv", "no label"]),
    "blank lines": ("t.tsv", "\n\n", ["t.tsv", "no label"]),
    "an empty file": ("t.tsv", "", ["t.tsv", "the file is empty"]),
    "documents with columns": ("t.csv", "text,label\na,b\n", ["t.csv:1", "look like documents", "comes first"]),
    "children under another key": (
        "t.json",
        '{"name": "A", "subcategories": [{"name": "B"}]}',
        ["t.json", "the object of 'A' may have labels under subcategories", "'children'"],
    ),
    "children under two keys": (
        "t.json",
        '{"name": "A", "children": ["B"], "more": [{"name": "C"}], "aliases": ["a"]}',
        ["t.json", "the object of 'A' may have labels under more,"],
    ),
    "names and a key of an object": ("t.json", '{"A": {"id": "x1", "B": {"C": {}}}}', ["t.json", "'x1'", "under B"]),
    "counts under names": ("t.json", '{"A": {"B": 120}}', ["t.json", "under 'B'", "not 120"]),
    "a scalar": ("t.json", "7", ["t.json", "at the top", "not 7"]),
    "JSON that is not UTF-8": ("t.json", b'{"Caf\xe9": {}}', ["t.json", "not UTF-8", "--encoding windows-1252"]),
    "a quote left open": ("t.csv", 'A,B\nA,"C\n', ["t.csv:2"]),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_taxonomy_is_refused_with_file_line_and_remedy(case: str, write: Write) -> None:
    name, content, words = BROKEN[case]
    with pytest.raises(InputError) as caught:
        Taxonomy.read(write(name, content))
    message = str(caught.value)
    assert [word for word in words if word not in message] == []


def test_lists_nested_a_thousand_deep_are_read(write: Write) -> None:
    assert Taxonomy.read(write("lists.json", "[" * 900 + '"A"' + "]" * 900)).labels == ("A",)


def test_a_json_file_on_one_line_of_any_length_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({f"{number:018}": ["x" * 30 + str(number)] for number in range(300_000)}))
    assert path.stat().st_size > 16 * 1024 * 1024
    assert len(Taxonomy.read(path)) == 600_000


def test_options_that_mean_nothing_are_refused(write: Write) -> None:
    path = write("t.txt", "A > B\n")
    with pytest.raises(InputError, match="'merge' or 'separate', not 'seperate'"):
        Taxonomy.read(path, homonyms="seperate")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="separator of paths is empty"):
        Taxonomy.read(path, separator="")


def test_json_nested_beyond_any_sense_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="parent TAB child"):
        Taxonomy.read(write("deep.json", '{"a":' * 100_000 + "{}" + "}" * 100_000))


def test_an_unknown_format_or_encoding_is_named(write: Write) -> None:
    path = write("t.tsv", "Root\tA\n")
    with pytest.raises(InputError, match="no taxonomy format 'skos'"):
        Taxonomy.read(path, format="skos")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no encoding of text called 'utf-9'"):
        Taxonomy.read(path, encoding="utf-9")


WRITTEN = ["t.tsv", "t.taxonomy", "t.csv", "t.json", "t.tsv.gz", "t.csv.xz", "t.json.zst", "t.tsv.bz2"]


@pytest.mark.parametrize("name", WRITTEN)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(taxonomy=taxonomies(PLAIN_NAMES))
def test_reading_what_was_written_is_the_identity(name: str, taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.write(tmp_path / name)
    assert Taxonomy.read(tmp_path / name) == taxonomy


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taxonomy=taxonomies(PLAIN_NAMES))
def test_two_columns_of_tabs_read_back_too(taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.write(tmp_path / "edges.tsv", format="edges")
    assert Taxonomy.read(tmp_path / "edges.tsv") == taxonomy
    assert Taxonomy.read(tmp_path / "edges.tsv", format="edges") == taxonomy


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(taxonomy=taxonomies(st.one_of(NAMES, st.just("Root"), st.just("a\tb\nc"), st.just('x"y,z'))))
def test_json_holds_any_name_and_other_formats_refuse_what_they_cannot(taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.write(tmp_path / "t.json")
    assert Taxonomy.read(tmp_path / "t.json") == taxonomy
    for name in ("t.tsv", "t.csv"):
        path = tmp_path / name
        path.unlink(missing_ok=True)
        try:
            taxonomy.write(path)
        except InputError as error:
            assert "Write it as JSON" in str(error)
            assert not path.exists()
        else:
            assert Taxonomy.read(path) == taxonomy


def test_the_suffix_that_counts_is_the_last_but_for_compression(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_edges([("A", "b > c")])
    for name in ("t.csv.bak", "t.json.old", "t.csv.GZ"):
        taxonomy.write(tmp_path / name)
        assert Taxonomy.read(tmp_path / name) == taxonomy


def test_a_family_of_many_children_is_read_back(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_edges([("Top", number) for number in range(25_000)])
    taxonomy.write(tmp_path / "t.tsv")
    assert Taxonomy.read(tmp_path / "t.tsv") == taxonomy


def test_a_chain_of_100_000_labels_goes_through_every_format(tmp_path: Path) -> None:
    taxonomy = Taxonomy.from_edges((number, number + 1) for number in range(100_000))
    for name in ("t.tsv", "t.csv", "t.json"):
        taxonomy.write(tmp_path / name)
        assert Taxonomy.read(tmp_path / name) == taxonomy


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "t.tsv"
    HEALTH.write(path)
    with pytest.raises(InputError, match="cannot be written as 'paths'"):
        HEALTH.write(path, format="paths")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be written"):
        HEALTH.write(path / "below" / "a" / "file.tsv")
    assert Taxonomy.read(path) == HEALTH
    assert [child.name for child in tmp_path.iterdir()] == ["t.tsv"]


def test_what_is_written_is_what_other_programs_expect(tmp_path: Path) -> None:
    HEALTH.write(tmp_path / "t.tsv")
    assert (tmp_path / "t.tsv").read_text() == FILES["hiagm.tsv"]
    HEALTH.write(tmp_path / "t.json.xz")
    entries = json.loads(lzma.decompress((tmp_path / "t.json.xz").read_bytes()))["labels"]
    assert entries[0] == {"label": "Health", "parents": []}
    assert entries[-1] == {"label": "Football", "parents": ["Sport"]}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(content=st.one_of(st.binary(max_size=200), st.text("AB>,;\t\n\r\"{}[]:'-# 1\0é", max_size=80).map(str.encode)))
@pytest.mark.filterwarnings("ignore::hitin.InputWarning")
@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.json", "t.txt", "t.tsv.gz"])
def test_any_bytes_are_a_taxonomy_or_a_clear_error(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    try:
        taxonomy = Taxonomy.read(path)
    except InputError as error:
        assert name in str(error)
    else:
        assert len(taxonomy) > 0


def test_a_taxonomy_beside_documents_of_another_encoding_is_utf_8_only_where_it_shows(write: Write) -> None:
    text = "Root\tSanté\n"
    for content, documents, expected in (
        (text.encode(), "windows-1252", "utf-8"),
        (text.encode("utf-8-sig"), "windows-1252", "utf-8-sig"),
        (text.encode("windows-1252"), "windows-1252", "windows-1252"),
        ("Root\t健康\n".encode("iso-2022-jp"), "iso-2022-jp", "iso-2022-jp"),  # whose bytes are all ASCII
        (text.encode("utf-16-le"), "utf-16-le", "utf-16-le"),
        (text.encode(), None, None),
    ):
        assert encoding_beside(write("taxonomy.tsv", content), documents) == expected
    assert encoding_beside("-", "windows-1252") == "windows-1252"
    assert encoding_beside("missing.tsv", "windows-1252") == "windows-1252"

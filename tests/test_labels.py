"""Labels as people write them, to numbers closed under ancestors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError, LabelReader, Taxonomy
from hitin.cells import names_in_list
from tests.strategies import NAMES, taxonomies

TAXONOMY = Taxonomy.from_paths(
    [["Health", "Injury", "Fracture"], ["Health", "Diet"], ["Sport", "Football"], ["R&D | labs", "A > B"]]
)


def names(reader: LabelReader, *labels: str) -> set[str]:
    found = reader.read(labels)
    assert found.unknown == ()
    return {reader.taxonomy.labels[label] for label in found.ids}


@pytest.mark.parametrize(
    "labels",
    [
        ["Fracture"],
        ["Health", "Injury", "Fracture"],
        ["Health > Injury > Fracture"],
        ["Health>Injury>Fracture"],
        ["Health--Injury--Fracture"],
        ["Root > Health > Injury > Fracture"],
        ["Health > Fracture"],
        ["Injury|Fracture"],
        ["Health > Injury | Health > Injury > Fracture|"],
    ],
)
def test_every_way_of_writing_a_label_gives_it_and_its_ancestors(labels: list[str]) -> None:
    assert names(LabelReader(TAXONOMY), *labels) == {"Health", "Injury", "Fracture"}


def test_a_name_that_is_a_label_is_never_split() -> None:
    reader = LabelReader(TAXONOMY)
    assert names(reader, "R&D | labs") == {"R&D | labs"}
    assert names(reader, "A > B") == {"R&D | labs", "A > B"}


@pytest.mark.parametrize(
    ("cell", "labels"),
    [
        ("['Health' 'Diet']", ["Health", "Diet"]),
        ("['Health'\n 'Diet']", ["Health", "Diet"]),
        ('["Health", "Diet"]', ["Health", "Diet"]),
        ("['it\\'s', \"a \\\\ b\"]", ["it's", "a \\ b"]),
        ("[1, 2]", ["1", "2"]),
        ("[1 2]", ["1", "2"]),
        ("[]", []),
        ("[red]", None),
        ("['a' b]", None),
        ("[{[]:1}]", None),
        ("[true]", None),
    ],
)
def test_lists_in_cells_are_read_as_json_python_and_numpy_write_them(cell: str, labels: list[str] | None) -> None:
    assert names_in_list(cell) == labels


@given(st.lists(st.text("ab'\" ,|[]\\", max_size=6), max_size=4))
def test_a_list_printed_by_python_reads_back(items: list[str]) -> None:
    assert names_in_list(repr(items)) == items


def test_a_list_that_a_data_frame_turned_into_text_is_a_list_again() -> None:
    reader = LabelReader(TAXONOMY)
    assert names(reader, "['Diet', 'Sport > Football']") == {"Health", "Diet", "Sport", "Football"}
    assert names(reader, "[]") == set()
    assert names(LabelReader(Taxonomy.from_edges([("2019", "[2019]")])), "[2019]") == {"2019", "[2019]"}


def test_one_label_and_numbers_may_be_given_as_they_are() -> None:
    assert names(LabelReader(Taxonomy.from_edges([(1, 2)])), 2) == {"1", "2"}  # type: ignore[arg-type]
    assert LabelReader(TAXONOMY).read("Diet").given == {TAXONOMY.index("Diet")}
    with pytest.raises(InputError, match="empty"):
        LabelReader(TAXONOMY, delimiter="")


def test_a_path_finds_the_label_that_is_called_by_it() -> None:
    separate = Taxonomy.from_paths([["Health", "Injury"], ["Sport", "Injury"]], homonyms="separate")
    reader = LabelReader(separate)
    assert names(reader, "Sport--Injury") == {"Sport", "Sport > Injury"}
    assert reader.read(["Injury"]).unknown == ("Injury",)
    assert reader.nearest("injury") in ("Health > Injury", "Sport > Injury")
    assert reader.nearest("Sport > Injry") == "Sport > Injury"


def test_a_label_that_is_called_by_its_path_names_what_is_above_it() -> None:
    deep = [["A", "B", "Other"], ["A", "C", "Other"], ["D", "Other"]]
    reader = LabelReader(Taxonomy.from_paths(deep, homonyms="separate"))
    for path in (" > ".join(path) for path in deep):
        assert reader.read([path]).is_complete
        assert reader.read([path.replace(" > ", "--")]).is_complete
    assert not LabelReader(Taxonomy.from_edges([("A", "B > C")])).read(["B > C"]).is_complete


def test_a_path_in_the_wrong_order_is_no_path() -> None:
    reader = LabelReader(TAXONOMY)
    for path in ("Injury > Health > Fracture", "Fracture > Injury", "Sport > Fracture"):
        assert reader.read([path]).unknown == (path,)


def test_the_artificial_root_is_no_unknown_label() -> None:
    assert names(LabelReader(TAXONOMY), "Root", "Diet") == {"Health", "Diet"}
    assert LabelReader(TAXONOMY, root="Top").read(["Root"]).unknown == ("Root",)


def test_other_separators_and_delimiters_can_be_given() -> None:
    reader = LabelReader(TAXONOMY, separators=["/"], delimiter=";")
    assert names(reader, "Health/Diet;Sport/Football") == {"Health", "Diet", "Sport", "Football"}
    assert reader.read(["Health > Diet"]).unknown == ("Health > Diet",)


def test_what_is_not_known_is_handed_back_and_the_rest_is_read() -> None:
    found = LabelReader(TAXONOMY).read(["Fractur|Diet", "Sport > Injury", "Football"])
    assert found.unknown == ("Fractur", "Sport > Injury")
    assert {TAXONOMY.labels[label] for label in found.ids} == {"Health", "Diet", "Sport", "Football"}


def test_given_complete_and_deepest_labels_are_told_apart() -> None:
    reader = LabelReader(TAXONOMY)
    found = reader.read(["Injury", "Football", "Sport"])
    assert not found.is_complete
    assert {TAXONOMY.labels[label] for label in found.deepest} == {"Injury", "Football"}
    assert reader.read(["Health", "Injury"]).is_complete
    assert reader.read([]).ids == ()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("helth", "Health"),
        ("FOOTBALL", "Football"),
        ("foot-ball", "Football"),
        ("Fractures", "Fracture"),
        ("xyz", None),
        ("Health > Fracure", "Health > Fracture"),
        ("Helth--Injury > Fracture", None),
        ("Helth > Injury > fractures", "Health > Injury > Fracture"),
    ],
)
def test_the_nearest_spelling_is_found(written: str, meant: str | None) -> None:
    assert LabelReader(TAXONOMY).nearest(written) == meant


def test_deep_labels_are_suggested_among_very_many() -> None:
    many = Taxonomy.from_edges([(f"parent {number % 9}", f"label number {number}") for number in range(210_000)])
    assert LabelReader(many).nearest("Label-Number 209999") == "label number 209999"
    assert LabelReader(many).nearest("labl number 209999") is None


@given(taxonomies(NAMES), st.data())
def test_reading_is_the_closure_and_reading_again_changes_nothing(taxonomy: Taxonomy, data: st.DataObject) -> None:
    reader = LabelReader(taxonomy)
    given_ids = data.draw(st.sets(st.integers(0, len(taxonomy) - 1)))
    for _ in range(2):  # the second time from memory
        found = reader.read([taxonomy.labels[label] for label in given_ids])
        assert found.ids == taxonomy.closure(given_ids)
        assert found.given == given_ids
        again = reader.read([taxonomy.labels[label] for label in found.ids])
        assert (again.ids, again.is_complete) == (found.ids, True)


@pytest.mark.parametrize("mark", [", ", "; ", ";", "\n"])
def test_several_labels_with_another_mark_are_told_how_to_be_written(mark: str) -> None:
    labels = TAXONOMY.labels[:2]
    assert LabelReader(TAXONOMY).nearest(mark.join(labels)) == "|".join(labels)
    assert LabelReader(TAXONOMY).nearest(f"{labels[0]}{mark}nothing of the kind") in (None, *TAXONOMY.labels)


def test_the_option_that_would_read_a_label_is_known() -> None:
    reader = LabelReader(TAXONOMY)
    for label, option in (
        ("Diet;Football", "--label-delimiter ';'"),
        ("Diet, Football", "--label-delimiter ,"),
        ("Diet\nFootball", r"--label-delimiter '\n'"),
        ("Health/Diet", "--separator /"),
        ("Health::Diet", "--separator ::"),
        ("Health\\Injury\\Fracture", r"--separator '\'"),
        ("Diet/Health", None),  # from the top down
        ("Diet;nothing of the kind", None),
        ("Fractur", None),
    ):
        assert reader.option_for(label) == option
    assert LabelReader(TAXONOMY, delimiter=";").option_for("Diet|Football") == "--label-delimiter '|'"

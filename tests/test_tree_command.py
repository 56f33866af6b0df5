"""`hitin tree`: what it prints and writes, and how it refuses."""

import gzip
import json
import os
import pty
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from hitin import CodingTree, Taxonomy
from hitin.coding_tree import Method, coding_tree
from tests.conftest import Run, Write

TAXONOMY = "Root\tHealth\tSport\nHealth\tInjury\tDiet\nSport\tFootball\tTennis\n"


@pytest.fixture
def taxonomy(write: Write) -> Path:
    return write("taxonomy.tsv", TAXONOMY)


def test_it_prints_the_entropies_the_layers_and_the_time(taxonomy: Path, run: Run) -> None:
    result = run("tree", taxonomy)
    assert result.exit_code == 0
    tree = coding_tree(Taxonomy.read(taxonomy))
    assert "coding tree of 6 vertices, height 2, method optimal" in result.stdout
    assert f"H^1      {tree.flat_entropy:.4f} bits" in result.stdout
    assert f"H^2      {tree.entropy:.4f} bits, " in result.stdout
    assert "nodes    6 > 2 > 1" in result.stdout
    assert "time" in result.stdout


@pytest.mark.parametrize("method", ["optimal", "paper", "random", "taxonomy"])
def test_json_is_for_programs(taxonomy: Path, method: Method, run: Run) -> None:
    result = run("tree", taxonomy, "--method", method, "--height", 3, "--seed", 5, "--with-root", "--json")
    found = json.loads(result.stdout)
    tree = coding_tree(Taxonomy.read(taxonomy), 3, method, seed=5, with_root=True)
    assert (found["entropy"], found["flat_entropy"]) == (tree.entropy, tree.flat_entropy)
    assert found["layer_sizes"] == list(tree.layer_sizes)
    assert (found["height"], found["method"], found["vertices"]) == (3, method, 7)
    assert found["seconds"] > 0


def test_it_writes_every_format_and_makes_the_folder(taxonomy: Path, tmp_path: Path, run: Run) -> None:
    names = [tmp_path / "new" / f"tree.{ending}" for ending in ("html", "svg", "json", "dot", "nwk", "json.gz")]
    result = run("tree", taxonomy, *(word for name in names for word in ("--out", name)))
    assert result.exit_code == 0
    tree = coding_tree(Taxonomy.read(taxonomy))
    page, picture, data, dot, newick, packed = names
    assert "Injury" in page.read_text()
    assert "<title>Coding tree of taxonomy.tsv</title>" in page.read_text()
    assert "<!doctype html>" in page.read_text().lower()
    assert ET.fromstring(picture.read_text()).tag.endswith("svg")
    assert CodingTree.from_json(json.loads(data.read_text())) == tree
    assert CodingTree.from_json(json.loads(gzip.decompress(packed.read_bytes()))) == tree
    assert dot.read_text() == tree.to_dot()
    assert newick.read_text() == tree.to_newick()
    for name in names:
        assert f"written  {name}" in result.stdout
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(name.name for name in names)


def test_a_file_that_cannot_be_written_is_told_before_anything_is_done(
    taxonomy: Path, tmp_path: Path, run: Run
) -> None:
    result = run("tree", taxonomy, "--out", tmp_path / "a.svg", "--out", tmp_path / "tree.png")
    assert result.exit_code == 2
    assert "tree.png: a tree cannot be written as .png\nThe name must end in .html, .svg, .json" in result.stderr
    assert not (tmp_path / "a.svg").exists()
    assert "without an ending" in run("tree", taxonomy, "--out", tmp_path / "tree").stderr


def test_the_taxonomy_itself_is_not_replaced(write: Write, run: Run) -> None:
    path = write("labels.json", '{"A": ["a", "b"]}')
    result = run("tree", path, "--out", path)
    assert result.exit_code == 2
    assert "the tree would replace the taxonomy" in result.stderr
    assert path.read_text() == '{"A": ["a", "b"]}'


def test_the_taxonomy_is_read_with_the_options_of_check(write: Write, run: Run) -> None:
    paths = write("paths.txt", "Top/Health/Injury\nTop/Sport/Injury\n".encode("utf-16"))
    options = ("--separator", "/", "--root", "Top", "--encoding", "utf-16", "--format", "paths")
    assert json.loads(run("tree", paths, *options, "--json").stdout)["vertices"] == 3
    separate = run("tree", paths, *options, "--homonyms", "separate", "--json")
    assert json.loads(separate.stdout)["vertices"] == 4


def test_what_is_wrong_with_the_taxonomy_is_told_without_a_traceback(write: Write, run: Run) -> None:
    for content, words in (("A\tB\nB\tA\n", "cycle"), ("", "empty"), (b"\xff\xfe\x00", "taxonomy.tsv")):
        result = run("tree", write("taxonomy.tsv", content))
        assert result.exit_code == 2
        assert words in result.stderr
        assert "Traceback" not in result.stderr
    assert "there is no such file" in run("tree", "nowhere.tsv").stderr
    assert run("tree", write("taxonomy.tsv", TAXONOMY), "--height", 0).exit_code == 2


def test_a_repeated_edge_is_a_warning_and_the_output_stays_for_programs(write: Write, run: Run) -> None:
    result = run("tree", write("taxonomy.csv", "parent,child\nA,B\nA,B\n"), "--json")
    assert result.exit_code == 0
    assert "warning: " in result.stderr
    assert "was given before" in result.stderr
    assert json.loads(result.stdout)["vertices"] == 2


def test_one_label_and_labels_without_edges_have_a_tree(write: Write, run: Run) -> None:
    for content in ("Root\tA\n", "Root\tA\tB\tC\n"):
        result = run("tree", write("taxonomy.tsv", content), "--out", write("tree.html", ""))
        assert result.exit_code == 0
        assert "H^2      0.0000 bits" in result.stdout


def test_a_tall_tree_shows_some_of_its_layers(taxonomy: Path, run: Run) -> None:
    result = run("tree", taxonomy, "--height", 40)
    assert "> … >" in result.stdout
    assert len(result.stdout.splitlines()) == 5


def test_a_person_at_a_terminal_sees_a_sign_of_life(taxonomy: Path) -> None:
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "hitin", "tree", str(taxonomy)]
    done = subprocess.run(
        command, stderr=follower, stdout=subprocess.PIPE, check=True, env={**os.environ, "TERM": "xterm"}
    )
    os.close(follower)
    assert b"building the tree" in os.read(leader, 10_000)
    os.close(leader)
    assert b"H^2" in done.stdout


def test_a_large_taxonomy_hints_at_numba_where_it_is_not_installed(write: Write) -> None:
    path = write("taxonomy.tsv", "".join(f"{i // 10}\tl{i}\n" for i in range(50_000)))
    script = f"import sys; sys.modules['numba'] = None; from hitin.cli import app; app(['tree', {str(path)!r}])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "pip install 'hitin[fast]'" in done.stderr
    assert "coding tree of 55" in done.stdout


def test_compiled_code_that_cannot_be_kept_is_compiled_anew() -> None:
    """As in a read-only installation: numba finds no folder to write to."""
    script = (
        "from hitin.coding_tree import Graph, coding_tree;"
        "print(coding_tree(Graph(3, [(0, 1), (1, 2)]), 1, compiled=True))"
    )
    nowhere = {**os.environ, "NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}  # which is for zip files only
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=nowhere)
    assert done.stdout.startswith("CodingTree(3 > 1,")


def test_errors_are_json_for_programs(run: Run) -> None:
    result = run("tree", "nowhere.tsv", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["problems"][0]["kind"] == "missing-file"
    assert "there is no such file" in result.stderr


def test_places_that_cannot_be_written_are_told_before_the_work(taxonomy: Path, tmp_path: Path, run: Run) -> None:
    circle = tmp_path / "circle.svg"
    circle.symlink_to(circle)
    places = [circle, taxonomy / "tree.svg", tmp_path / ("long" * 100 + ".svg")]
    (tmp_path / "folder.svg").mkdir()
    for place in [*places, tmp_path / "folder.svg"]:
        result = run("tree", taxonomy, "--out", tmp_path / "first.json", "--out", place)
        assert result.exit_code == 2, place
        assert "the file cannot be written" in result.stderr
        assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["circle.svg", "folder.svg", "taxonomy.tsv"]


def test_a_link_to_a_pipe_can_be_written_to(taxonomy: Path, tmp_path: Path) -> None:
    link = tmp_path / "out.nwk"
    link.symlink_to("/dev/stdout")
    command = [sys.executable, "-m", "hitin", "tree", str(taxonomy), "--out", str(link)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert b"Football" in done.stdout

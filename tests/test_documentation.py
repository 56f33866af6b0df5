"""Every block of README and docs is run, but for those that say why not; the reference is that of the code."""

import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import hitin
from hitin import CodingTree, HierarchicalTextClassifier, Taxonomy, cli
from hitin.decisions import Decisions
from tests.conftest import REPOSITORY, Run
from tests.documents import KINDS, PAGES, REASONS, SLOW, Block, blocks, commands, run_block

BLOCKS = [block for page in PAGES for block in blocks(page)]
DOCS = REPOSITORY / "docs"


def by_page(slow: bool) -> list[Path]:
    """Pages with something to run here, or with blocks that take long."""
    return [page for page in PAGES if any(each.remark == SLOW if slow else each.is_run_here for each in blocks(page))]


def like_a_checkout(folder: Path) -> Path:
    """A folder with links to all of the repository but what earlier blocks wrote: nothing of it is finished already,
    and pages that are run at once do not meet."""
    place = folder / "checkout"
    place.mkdir()
    for path in REPOSITORY.iterdir():
        if not path.name.startswith(".") and path.name != "runs":
            (place / path.name).symlink_to(path)
    return place


@pytest.mark.parametrize("page", by_page(slow=False), ids=lambda page: page.name)
def test_the_blocks_of_a_page_work_in_their_order(
    page: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(like_a_checkout(tmp_path))
    for block in blocks(page):
        if block.is_run_here:
            run_block(block, run, tmp_path)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("page", by_page(slow=True), ids=lambda page: page.name)
def test_the_blocks_that_take_long_work_too(
    page: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(like_a_checkout(tmp_path))
    for block in blocks(page):
        if block.is_run_here or block.remark == SLOW:
            run_block(block, run, tmp_path)


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.place)
def test_a_block_is_run_or_says_why_not(block: Block) -> None:
    assert block.kind in KINDS, "a block names its kind after the fence"
    if block.remark.startswith("not run"):
        assert any(reason in block.remark for reason in REASONS)
    elif block.remark.startswith("run by") and block.remark != SLOW:
        assert (REPOSITORY / block.remark.removeprefix("run by ")).is_file()
    elif block.kind == "text" and block.page.name != "commands.md":  # the examples of `--help`, which name no real file
        starts = ("$ ", "hitin ", "pip ", "python ", "make ", "curl ", "echo ", "import ", "from ")
        assert not [line for line in block.text.splitlines() if line.startswith(starts)], "commands are no text"


def test_a_page_has_no_fence_that_is_not_looked_at() -> None:
    for page in PAGES:
        fences = len(re.findall(r"^\s*```", page.read_text(encoding="utf-8"), re.MULTILINE))
        assert fences == 2 * len(blocks(page)), page.name


def options(command: object) -> Iterator[str]:
    """All options of a command and of those below it."""
    for parameter in getattr(command, "params", ()):
        yield from (*parameter.opts, *parameter.secondary_opts)
    for below in getattr(command, "commands", {}).values():
        yield from options(below)


def test_options_that_pages_name_are_there() -> None:
    known = {*options(get_command(cli.app)), "--help", "--version", "--with-text"}
    others = {"--nproc-per-node", "--node-rank", "--group"}  # of torchrun and pip
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for code in re.findall(r"`([^`\n]+)`", text):
            found = set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", code))
            if not code.startswith(("python ", "pip ", ".venv")):
                assert found <= known | others, f"{page.name}: {code}"


def test_commands_of_blocks_that_are_not_run_have_options_that_are_there() -> None:
    verbs = get_command(cli.app).commands  # type: ignore[attr-defined]
    for block in BLOCKS:
        for command in commands(block) if block.remark and block.kind in ("sh", "console") else ():
            words = shlex.split(command.replace("$(cat key.txt)", "KEY"))
            if "hitin" in words:
                verb, *rest = words[words.index("hitin") + 1 :]
                given = {word for word in rest if word.startswith("--")}
                assert given <= set(options(verbs[verb])), f"{block.place}: {command}"


def test_the_reference_is_that_of_the_code() -> None:
    for file, text in runpy.run_path(str(DOCS / "write_reference.py"))["pages"]().items():
        assert file.read_text(encoding="utf-8") == text, f"{file.name} is old: run python docs/write_reference.py"


def test_the_reference_names_what_is_public() -> None:
    text = (DOCS / "reference.md").read_text(encoding="utf-8")
    words = set(re.findall(r"\w+", text))
    assert set(hitin.__all__) - {"__version__"} <= words
    for kind in (HierarchicalTextClassifier, Taxonomy, CodingTree, Decisions):
        public = {name for name in vars(kind) if not name.startswith("_")}
        assert public <= words, f"{kind.__name__}: {sorted(public - words)}"


def test_the_picture_of_a_coding_tree_is_that_of_the_code() -> None:
    found = runpy.run_path(str(DOCS / "pictures" / "draw_coding_tree.py"))
    drawn: Path = found["PICTURE"]
    assert drawn.read_text(encoding="utf-8") == found["picture"](), "run python docs/pictures/draw_coding_tree.py"


def test_every_page_is_in_the_contents() -> None:
    contents = "".join(block.text for block in blocks(DOCS / "index.md"))
    listed = re.findall(r"^(?:.*<)?([\w-]+)>?$", contents, re.MULTILINE)
    assert sorted(listed) == sorted({page.stem for page in DOCS.glob("*.md")} - {"index"})


def test_the_readme_fits_a_terminal() -> None:
    assert [line for line in (REPOSITORY / "README.md").read_text().splitlines() if len(line) > 120] == []


def test_pages_read_well_as_they_are_too() -> None:
    """Not only as they are built: a link has words, and no line is taken for a remark, as one that begins with % is."""
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        assert "[](" not in text, page.name
        assert re.findall(r"^ *%.*$", text, re.MULTILINE) == [], page.name


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"

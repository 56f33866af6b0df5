"""The tables in `benchmarks/results/studies` are those of the results that lie beside them."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from hitin.cli import app
from hitin.compare.comparison import prepare
from tests.comparison_harness import copy_of_studies
from tests.conftest import REPOSITORY

STUDIES = sorted(file.stem for file in (REPOSITORY / "benchmarks" / "studies").glob("*.toml"))


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all studies and their results, in the folder of a repository."""
    copy_of_studies(tmp_path)
    monkeypatch.chdir(tmp_path)
    return Path("benchmarks", "results", "studies")


@pytest.mark.parametrize("study", STUDIES)
def test_the_kept_results_are_those_that_the_study_asks_for(study: str) -> None:
    folder = REPOSITORY / "benchmarks" / "results" / "studies" / study
    found = prepare(REPOSITORY / "benchmarks" / "studies" / f"{study}.toml", folder, trains=False, writes=False)
    assert found.states().keys() == {"finished"}
    assert found.unasked() == 0


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_the_kept_tables_come_out_of_the_kept_results(study: str, kept: Path) -> None:
    file, folder = f"benchmarks/studies/{study}.toml", kept / study
    found = CliRunner().invoke(app, ["compare", file, "--out", str(folder), "--tables-only"])
    assert found.exit_code == 0, found.output
    for name in ("tables.md", "tables.csv"):
        assert (folder / name).read_bytes() == (REPOSITORY / folder / name).read_bytes()

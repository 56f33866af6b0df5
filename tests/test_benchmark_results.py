"""The tables in `benchmarks/results/compare` are those of the results that lie beside them."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hitin.cli import app
from tests.conftest import REPOSITORY


@pytest.mark.slow
def test_the_kept_tables_come_out_of_the_kept_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Path("benchmarks", "results", "compare")
    shutil.copytree(REPOSITORY / kept, tmp_path / kept, ignore=shutil.ignore_patterns("resampled.npz"))
    shutil.copy(REPOSITORY / "benchmarks" / "compare.toml", tmp_path / "benchmarks")
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, ["compare", "benchmarks/compare.toml", "--out", str(kept), "--tables-only"])
    assert found.exit_code == 0, found.output
    assert "53 of 53 trainings are finished" in found.output
    for name in ("tables.md", "tables.csv"):
        assert (tmp_path / kept / name).read_bytes() == (REPOSITORY / kept / name).read_bytes()

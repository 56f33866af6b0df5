"""A newcomer who has a CSV and the README, and nothing else, comes to a served model in six commands."""

import csv
import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from hitin import Taxonomy
from tests.conftest import REPOSITORY
from tests.serving import serving

MARK = "<!-- run by tests/test_newcomer.py -->"
TICKETS = {
    "Device > Battery": ["The battery is {} empty", "My charger gets {} hot", "It {} dies without the charger"],
    "Device > Screen": ["The screen is {} dark", "There is {} a crack in the glass", "The screen flickers {}"],
    "Delivery > Late": ["My parcel is {} late", "The parcel has {} not come yet", "The courier is {} late again"],
    "Delivery > Damaged": ["The box was {} broken", "The box was {} open and wet", "Half of the box is {} broken"],
    "Billing > Refund": ["I was {} charged twice", "I want my money {} back", "My money has {} not been paid back"],
    "Billing > Invoice": ["The invoice is {} missing", "My name on the invoice is {} wrong", "No invoice came {}"],
}
"""Complaints of six kinds."""
HOW = ["really", "very", "still", "always", "now", "already", "again", "often"]


def commands() -> list[list[str]]:
    """The words of each command of the README's passage."""
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    block = re.search(rf"^{re.escape(MARK)}\n```sh\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert block is not None, "the README has no passage for newcomers"
    return [shlex.split(line, comments=True) for line in block[1].splitlines() if line.strip()]


def write_tickets(file: Path) -> None:
    rows = [(text.format(how), label) for label, texts in TICKETS.items() for text in texts for how in HOW]
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("text", "label"), *rows])


def test_six_commands_or_fewer_and_the_first_installs() -> None:
    first, *others = commands()
    assert len(others) <= 5
    assert first[:2] == ["pip", "install"]
    extras = re.fullmatch(r"\.\[(.*)\]", first[2])
    assert extras is not None
    known = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(extras[1].split(",")) <= set(known["optional-dependencies"])


def test_from_a_csv_of_their_own_to_a_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands as they stand, but for the port, and the browser, which nobody looks at here."""
    monkeypatch.chdir(tmp_path)
    _, *prepare, serve, ask = commands()
    write_tickets(tmp_path / "tickets.csv")
    for program, *words in prepare:
        assert program == "hitin"
        done = subprocess.run([sys.executable, "-m", "hitin", *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"
    assert serve[:2] == ["hitin", "serve"]
    assert ask[0] == "curl"
    with serving(tmp_path / "log", [word for word in serve[2:] if word != "--open"]) as served:
        asked = json.loads(ask[ask.index("-d") + 1])
        answer = served.post(urlsplit(ask[-1]).path, asked)
        others = served.predict("The charger is hot", "There is a crack in the screen")
    assert answer.status_code == 200
    taxonomy = Taxonomy.read(tmp_path / "taxonomy.tsv")
    assert set(taxonomy) == {name for label in TICKETS for name in label.split(" > ")}
    assert answer.json()["documents"][0]["labels"] == ["Delivery", "Late"]
    assert [document["paths"] for document in others["documents"]] == [["Device > Battery"], ["Device > Screen"]]

"""The command line: reports, exit codes, and errors without a traceback."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pandas as pd
import pytest
import typer
from typer.main import get_command
from typer.models import OptionInfo

from hitin import Taxonomy, cli, kills
from hitin.doctor.problems import KINDS
from hitin.errors import counted
from tests.conftest import REPOSITORY, Run, Write

TAXONOMY = "Root\tHealth\tSport\nHealth\tInjury\tDiet\nSport\tFootball\n"
GOOD = '{"text": "a broken leg", "label": ["Injury"]}\n{"text": "offside", "label": "Sport > Football"}\n'


@pytest.fixture
def taxonomy(write: Write) -> Path:
    return write("taxonomy.tsv", TAXONOMY)


@pytest.mark.parametrize(("name", "treated"), [("SOME_OTHER", True), ("TORCHELASTIC_RUN_ID", False)])
def test_polite_kills_are_ours_to_treat_unless_a_launcher_looks_for_them(
    name: str, treated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        kills.unwind_on_kills()
        assert (signal.getsignal(signal.SIGTERM) != signal.SIG_DFL) == treated
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        kills.unwind_on_kills()
        assert signal.getsignal(signal.SIGTERM) == signal.default_int_handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_good_data_is_reported_in_tables_with_exit_code_0(taxonomy: Path, write: Write, run: Run) -> None:
    result = run("check", taxonomy, write("train.jsonl", GOOD))
    assert result.exit_code == 0
    for words in ("5, 3 of them leaves", "documents", "labels a document", "Fit to train on"):
        assert words in result.stdout


def test_a_taxonomy_alone_is_examined(taxonomy: Path, run: Run) -> None:
    result = run("check", taxonomy)
    assert result.exit_code == 0
    assert "The taxonomy is sound" in result.stdout


def test_unknown_labels_give_exit_code_1_and_name_the_line(taxonomy: Path, write: Write, run: Run) -> None:
    path = write("train.jsonl", GOOD + '{"text": "x", "label": "Foot ball"}\n')
    result = run("check", taxonomy, path)
    assert result.exit_code == 1
    assert f"{path}:3  'Foot ball'; did you mean 'Football'?" in result.stdout


TICKETS = "text,label\n" + "It dies after an hour.,Device > Battery\nThe screen stays dark.,Device > Screen\n" * 4


def test_documents_without_a_taxonomy_are_told_how_one_is_made(
    write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is told is tried as well, as a person would copy it."""
    documents = write("my tickets.csv", TICKETS.replace("text", "body"))
    monkeypatch.chdir(documents.parent)
    options = ("--text-key", "body", "--out", "new")
    result = run("train", documents, *options)
    assert result.exit_code == 2
    assert f"{documents}: these are documents; a taxonomy must come before them" in result.stderr
    assert "columns parent and child" in result.stderr
    told = [shlex.split(line)[1:] for line in result.stderr.splitlines() if line.startswith("  hitin ")]
    assert [words[0] for words in told] == ["taxonomy", "train"]
    assert told[1][told[1].index("--out") + 1] == "new"
    for words in told:
        quick = ["--method", "linear"] if words[0] == "train" else []
        done = run(*words, *quick)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("verb", ["train", "check", "tree"])
def test_json_lines_in_place_of_a_taxonomy_are_told_the_same(verb: str, write: Write, run: Run) -> None:
    result = run(verb, write("train.jsonl", GOOD))
    assert result.exit_code == 2
    assert "hitin taxonomy" in result.stderr


def test_a_taxonomy_without_documents_is_told_what_is_missing(taxonomy: Path, write: Write, run: Run) -> None:
    result = run("train", taxonomy, "--out", "model")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: TRAIN is missing. Files of training documents")
    assert "For example: hitin train taxonomy.tsv train.jsonl" in result.stderr
    assert "these are documents" not in result.stderr
    others = run("train", write("mine.csv", TICKETS.replace("text,label", "body,category")))
    assert "TRAIN is missing" in others.stderr
    assert "hitin taxonomy --help" in others.stderr


def test_documents_in_place_of_a_model_are_told_what_comes_first(write: Write, run: Run) -> None:
    documents = write("test.csv", TICKETS)
    result = run("evaluate", documents)
    assert result.exit_code == 2
    assert f"{documents}: this is a file, not the folder of a model" in result.stderr
    assert f"hitin evaluate MODEL {documents}" in result.stderr


def test_what_is_missing_is_told_to_programs_too(taxonomy: Path, write: Write, run: Run) -> None:
    result = run("train", taxonomy, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["problems"][0]["kind"] == "missing-argument"
    assert run("train", taxonomy, write("train.jsonl", GOOD)).stderr.startswith("error: --out is missing. The folder")
    early = run("train", "--json", "--epochs", 2)
    assert json.loads(early.stdout)["problems"][0]["kind"] == "missing-argument"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("evaluate", "model", "test.csv", "--threshold", 2, "--json"), "--threshold"),
        (("evaluate", "model", "test.csv", "--json", "--nope"), "--nope"),
        (("evaluate", "model", "test.csv", "--json", "--threshold"), "--threshold"),
        (("tree", "a.tsv", "b.tsv", "--json"), "b.tsv"),
        (("data", "wos", "in", "--out", "", "--json"), "--out"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_told_to_programs_too(
    words: tuple[object, ...], told: str, run: Run
) -> None:
    result = run(*words)
    assert result.exit_code == 2
    report = json.loads(result.stdout)
    assert (report["exit_code"], [problem["kind"] for problem in report["problems"]]) == (2, ["bad-option"])
    assert told in json.dumps(report)
    assert told in result.stderr


def test_programs_are_told_nothing_that_was_not_asked_for(run: Run) -> None:
    for words in (
        ("evaluate", "model", "test.csv", "--threshold", 2),
        ("predict", "model", "--json"),
        ("nope", "--json"),
        ("evaluate", "model", "--threshold", 2, "--", "--json"),
    ):
        result = run(*words)
        assert (result.exit_code, result.stdout) == (2, "")


def _verbs() -> list[list[str]]:
    """Every command that cannot be run without arguments."""
    group: Any = get_command(cli.app)
    found = [([name], each) for name, each in group.commands.items() if name != "data"]
    found += [(["data", name], each) for name, each in group.commands["data"].commands.items()]
    return [words for words, each in found if any(parameter.required for parameter in each.params)]


@pytest.mark.parametrize("words", _verbs(), ids=" ".join)
def test_a_command_alone_shows_an_example_of_itself(words: list[str], run: Run) -> None:
    result = run(*words)
    verb = " ".join(["hitin", *words])
    assert result.exit_code == 2
    assert re.match(r"error: [A-Z][\w.]+ is missing. \w.+", result.stderr)
    assert re.search(rf"^For example: .*{verb} \w", result.stderr, re.MULTILINE)
    assert f"{verb} --help tells more." in result.stderr


def test_what_is_given_but_wrong_is_still_told(taxonomy: Path, run: Run) -> None:
    result = run("tree", taxonomy, "--height", "none")
    assert result.exit_code == 2
    assert "--height" in result.stderr
    assert "is missing" not in result.stderr


def test_one_of_a_kind_is_told_in_the_singular(write: Write, run: Run) -> None:
    one = write("one.tsv", "Root\tOnly\n")
    documents = write("train.jsonl", '{"text": "a broken leg", "label": "Onli"}\n')
    told = run("check", one, documents).stdout
    assert "1 label that the taxonomy does not have." in told
    assert "1 label that no document has" in told or "1 training file in which no document" in told
    assert "1 vertex, height" in run("tree", one).stdout
    assert repr(Taxonomy.read(one)) == "Taxonomy(1 label, 1 level, tree)"
    tickets = write("tickets.csv", "text,label\na,Device > Battery\n")
    assert (
        "2 labels of 1 document (1 on level 1, 1 on level 2)"
        in run("taxonomy", tickets, "--out", one.parent / "o.tsv").stdout
    )


def test_no_kind_of_problem_is_told_of_one_in_the_plural() -> None:
    """The first noun of each title, which comes after the count."""
    for kind in KINDS.values():
        noun, nouns = kind.one.split()[0], kind.several.split()[0]
        assert nouns in (f"{noun}s", "taxonomies", "training"), kind
        assert counted(1, kind.one, kind.several) == f"1 {kind.one}"
        assert counted(1200, kind.one, kind.several) == f"1,200 {kind.several}"


def test_json_is_for_programs(taxonomy: Path, write: Write, run: Run) -> None:
    result = run("check", taxonomy, write("train.jsonl", GOOD), "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["splits"][0]["documents"] == 2
    broken = run("check", write("broken.tsv", "A\tA\n"), "--json")
    assert broken.exit_code == 2
    assert json.loads(broken.stdout)["problems"][0]["kind"] == "self-loop"


def test_keys_separator_root_and_homonyms_are_options(write: Write, run: Run) -> None:
    paths = write("paths.txt", "Top/Health/Injury\nTop/Sport/Injury\n")
    documents = write("a.csv", "body,category\nleg,Health > Injury\n")
    result = run(
        *("check", paths, documents, "--separator", "/", "--root", "Top", "--homonyms", "separate"),
        *("--text-key", "body", "--label-key", "category", "--rare", "1", "--json"),
    )
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    assert report["taxonomy"]["labels"] == 4
    assert report["splits"][0]["labels_used"] == 2


BAD_TAXONOMIES = {
    "an empty file": (b"", "the file is empty"),
    "bytes that are not UTF-8": (b"Root\tcaf\xe9\n", ":1: the bytes are not UTF-8"),
    "a cycle": (b"A\tB\nB\tC\nC\tA\n", "cycle: A > B > C > A"),
    "a self-loop": (b"Root\tA\nA\tA\n", ":2: the label 'A' is its own parent"),
    "a ragged row": (b"parent,child\nA,B,C\n", ":2: the row has 3 columns"),
    "broken JSON": (b'{"A": \n[}', ":2: the JSON is broken"),
    "a line over the limit": (b"A\tB\n" + b"x" * (16 * 1024 * 1024 + 1), ":2: the line is longer than 16,777,216"),
}


@pytest.mark.parametrize("case", BAD_TAXONOMIES)
def test_a_bad_taxonomy_gives_one_screen_and_exit_code_2(case: str, write: Write, run: Run) -> None:
    content, words = BAD_TAXONOMIES[case]
    path = write("taxonomy.csv" if case == "a ragged row" else "taxonomy.txt", content)
    result = run("check", path)
    assert_one_screen(result.exit_code, result.stdout, result.stderr)
    assert str(path) in result.stderr
    assert words in result.stderr


BAD_DOCUMENTS = {
    "an empty file": ("a.jsonl", b"", "the file is empty"),
    "bytes that are not UTF-8": ("a.jsonl", b'{"text": "caf\xe9", "label": "Diet"}', "the bytes are not UTF-8"),
    "a ragged CSV row": ("a.csv", b"text,label\na,Diet\nb\n", ":3  the row has 1 column where"),
    "broken JSON on line 3": ("a.jsonl", GOOD.encode() + b"{", ":3  the JSON is broken"),
    "a document without text": ("a.jsonl", b'{"label": "Diet"}', ":1  the document has no text"),
    "a document without label": ("a.jsonl", b'{"text": "a"}', ":1  the document has no label"),
    "a label of a wrong kind": ("a.jsonl", b'{"text": "a", "label": {"b": 1}}', ":1  labels must be text"),
    "a line over the limit": ("a.jsonl", b'{"text": "' + b"x" * (16 * 1024 * 1024) + b'"}', ":1  the line is longer"),
}


@pytest.mark.parametrize("case", BAD_DOCUMENTS)
def test_bad_documents_give_one_screen_and_exit_code_2(case: str, taxonomy: Path, write: Write, run: Run) -> None:
    name, content, words = BAD_DOCUMENTS[case]
    path = write(name, content)
    result = run("check", taxonomy, path)
    assert_one_screen(result.exit_code, result.stdout, result.stderr)
    assert str(path) in result.stderr
    assert words in result.stderr


def test_missing_files_and_directories_give_one_screen_and_exit_code_2(
    taxonomy: Path, write: Write, run: Run, tmp_path: Path
) -> None:
    documents = write("train.jsonl", GOOD)
    for arguments, words in (
        ((tmp_path / "taxonomi.tsv",), "Did you mean taxonomy.tsv?"),
        ((tmp_path,), "this is a directory"),
        ((taxonomy, tmp_path / "tren.jsonl"), "there is no such file"),
        ((taxonomy, documents, tmp_path), "this is a directory"),
        ((taxonomy, "."), "this is a directory"),
        ((taxonomy, ".."), "this is a directory"),
        ((taxonomy, "/"), "this is a directory"),
        ((taxonomy, ""), "there is no such file"),
    ):
        result = run("check", *arguments)
        assert_one_screen(result.exit_code, result.stdout, result.stderr)
        assert words in result.stderr


def assert_one_screen(exit_code: int, stdout: str, stderr: str) -> None:
    assert exit_code == 2
    assert stdout == ""
    assert "Traceback" not in stderr
    assert 1 < len(stderr.splitlines()) <= 24


def test_a_wrong_option_is_explained(taxonomy: Path, run: Run) -> None:
    result = run("check", taxonomy, "--format", "skos")
    assert result.exit_code == 2
    assert "skos" in result.stderr
    assert run("chekc").exit_code == 2


def test_help_shows_examples_and_the_version_is_told(run: Run) -> None:
    assert "hitin check taxonomy.tsv train.jsonl" in run("check", "--help").stdout
    assert "Exit code" in run("check", "-h").stdout
    assert run("--version").stdout.startswith("hitin 0.")
    assert "check" in run().output


def test_commands_to_copy_name_the_program_so_that_a_shell_finds_it(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("hitin")
    documents = REPOSITORY / "examples" / "tickets" / "test.csv"

    def told(folder: Path, path: str) -> str:
        words: list[str | Path] = [program, "taxonomy", documents, "--out", tmp_path / "tree.tsv", "--overwrite"]
        done = subprocess.run(
            words, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=True
        )
        return done.stdout.splitlines()[-1].split(" check ")[0].strip()

    elsewhere = str(tmp_path)
    assert told(tmp_path, elsewhere) == str(program)  # Python's environment was not made the shell's
    assert told(program.parent.parent, elsewhere) == "bin/hitin"
    assert told(tmp_path, str(program.parent)) == "hitin"


def hitin(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "hitin", *map(str, arguments)]


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_output_into_a_closed_pipe_is_no_error(options: list[str], taxonomy: Path) -> None:
    command = " ".join(hitin("check", taxonomy, *options))
    script = f"{command} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_full_disk_is_told_without_a_traceback(taxonomy: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(hitin("check", taxonomy), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_names_that_the_terminal_cannot_show_are_escaped(options: list[str], write: Write) -> None:
    taxonomy = write("taxonomy.tsv", "Root\tCafé\t日本\t😀\n")
    documents = write("train.jsonl", '{"text": "a", "label": "日本x"}\n{"\\ud800": 1, "label": "日本"}\n')
    environment = os.environ | {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0"}
    for arguments, code in (((taxonomy,), 0), ((taxonomy, documents), 2)):
        done = subprocess.run(hitin("check", *arguments, *options), capture_output=True, env=environment, check=False)
        assert done.returncode == code
        assert b"Traceback" not in done.stderr
        if options:
            json.loads(done.stdout)


def test_standard_input_is_a_dash(taxonomy: Path) -> None:
    done = subprocess.run(
        hitin("check", taxonomy, "-", "--json"), input=GOOD + "{", capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert json.loads(done.stdout)["problems"][0]["examples"][0]["place"] == "standard input:3"


def test_parquet_may_come_from_standard_input(taxonomy: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pd.DataFrame({"text": ["a"], "label": ["Diet"]}).to_parquet(path)
    with path.open("rb") as stdin:
        done = subprocess.run(hitin("check", taxonomy, "-", "--json"), stdin=stdin, capture_output=True, check=False)
    assert json.loads(done.stdout)["splits"][0]["documents"] == 1


def test_closed_output_and_input_that_does_not_wait_are_no_tracebacks(taxonomy: Path) -> None:
    script = f"{' '.join(hitin('check', taxonomy))} >&-"
    closed = subprocess.run(["/bin/bash", "-c", script], capture_output=True, text=True, check=False)
    assert "Traceback" not in closed.stderr
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    impatient = subprocess.run(hitin("check", taxonomy, "-"), stdin=reader, capture_output=True, text=True, check=False)
    os.close(reader)
    os.close(writer)
    assert impatient.returncode == 2
    assert "standard input: the file cannot be read" in impatient.stderr.replace("  ", ": ")
    assert "Traceback" not in impatient.stderr


def test_file_names_do_the_terminal_no_harm(taxonomy: Path, write: Write, run: Run) -> None:
    names = ["esc\x1b[31mRED.jsonl", "new\nline.jsonl", "train:100:[red].jsonl", "back\\.jsonl"]
    shown = run("check", taxonomy, *(write(name, GOOD.replace("leg", str(at))) for at, name in enumerate(names))).stdout
    assert "\x1b" not in shown
    for name in ("esc\\x1b[31mRED.jsonl", "new\\nline.jsonl", "train:100:[red].jsonl", "back\\.jsonl"):
        assert name in shown
    assert "\x1b" not in run("check", taxonomy, "no\x1b[31mRED.jsonl").stderr


def test_taxonomy_and_documents_may_have_different_encodings(write: Write, run: Run) -> None:
    taxonomy = write("taxonomy.tsv", "Root\tSanté\n")
    documents = write("train.jsonl", '{"text": "a", "label": "Santé"}'.encode("latin-1"))
    options = ("--encoding", "latin-1", "--taxonomy-encoding", "utf-8")
    assert run("check", taxonomy, documents, *options).exit_code == 0


def test_a_missing_library_is_told_to_people_and_programs(
    taxonomy: Path, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    path = write("train.parquet", b"PAR1")
    assert "pip install 'hitin[parquet]'" in run("check", taxonomy, path).stderr
    report = json.loads(run("check", taxonomy, path, "--json").stdout)
    assert report["problems"][0]["kind"] == "missing-extra"


@pytest.mark.parametrize("columns", ["40", "200"])
def test_no_number_is_cut_however_narrow_the_terminal(
    columns: str, taxonomy: Path, write: Write, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    files = [write(f"split_{number}.jsonl", GOOD.replace("leg", f"leg {number}")) for number in range(8)]
    shown = run("check", taxonomy, *files).stdout
    assert "…" not in shown
    assert all(f"split_{number}.jsonl" in shown for number in range(8))


def test_files_of_the_same_name_are_told_apart_by_their_folders(taxonomy: Path, run: Run, tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.jsonl").write_text(GOOD.replace("a broken", f"a {name}"))
    shown = run("check", taxonomy, tmp_path / "train" / "data.jsonl", tmp_path / "test" / "data.jsonl").stdout
    assert "train/data.jsonl" in shown
    assert "test/data.jsonl" in shown


def test_ctrl_c_stops_without_a_traceback(taxonomy: Path) -> None:
    with subprocess.Popen(
        hitin("check", taxonomy, "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        process.stdin.write(GOOD * 10_000)
        process.stdin.flush()  # it is reading now, and waits for more
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=20)
    assert process.returncode == 130
    assert stderr.strip() == "stopped"


def test_a_person_at_a_terminal_sees_progress_and_a_report(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", GOOD * 3000)
    master, slave = pty.openpty()
    done = subprocess.run(hitin("check", taxonomy, train), stdout=subprocess.PIPE, stderr=slave, check=False)
    os.close(slave)
    seen = os.read(master, 100_000).decode()
    os.close(master)
    assert "train.jsonl" in seen
    assert done.returncode == 0
    assert "6,000" in done.stdout.decode()


@pytest.mark.parametrize("verb", ["check", "tree", "taxonomy", "train", "evaluate", "predict", "demo", "data icd10"])
def test_the_examples_of_the_help_stand_on_lines_of_their_own(verb: str, run: Run) -> None:
    shown = [line.strip() for line in run(*verb.split(), "--help").stdout.splitlines()]
    assert "Examples:" in shown
    examples = [line for line in shown if line.startswith((f"hitin {verb}", "echo "))]
    assert len(examples) >= 2
    assert all(line.count("hitin ") == 1 for line in examples)


def declared(typed: typer.Typer) -> dict[str, Any]:
    """The functions behind the commands of an app, those of its groups too."""
    own = {command.callback.__name__: command.callback for command in typed.registered_commands if command.callback}
    for group in typed.registered_groups:
        if group.typer_instance:
            own |= declared(group.typer_instance)
    return own


def built(command: Any) -> dict[str, Any]:
    """The commands as they are called."""
    found: dict[str, Any] = {}
    for name, each in command.commands.items():
        found |= built(each) if hasattr(each, "commands") else {name: each}
    return found


def test_options_are_written_in_lower_case_whatever_their_metavar() -> None:
    """Some versions of typer take a metavar that is the parameter's name in capitals for the option itself."""
    commands = built(get_command(cli.app))
    assert commands.keys() == declared(cli.app).keys() > {"train", "compare", "icd10"}
    names = [name for command in commands.values() for parameter in command.params for name in parameter.opts]
    assert "--device" in names
    assert [name for name in names if name.startswith("-") and name != name.lower()] == []


def test_an_option_with_a_metavar_says_its_own_name() -> None:
    looked_at = 0
    for command, function in declared(cli.app).items():
        for parameter, hint in get_type_hints(function, include_extras=True).items():
            for option in getattr(hint, "__metadata__", ()):
                if isinstance(option, OptionInfo) and option.metavar:
                    written = [str(option.default), *(option.param_decls or ())]
                    assert any(word.startswith("--") for word in written), f"{command}: {parameter}"
                    looked_at += 1
    assert looked_at > 5

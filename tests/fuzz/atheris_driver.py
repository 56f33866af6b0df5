"""The targets driven by coverage: `python -m tests.fuzz.atheris_driver TARGET [SECONDS]`, from the repository's root.

It needs atheris (`pip install --group fuzz`). What does harm is written to `corpus/TARGET/`, with the trace of it on
standard error; the next `make test` tries it. TARGET is one of `tests.fuzz.targets.TARGETS`, or `all`.
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import traceback
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

USAGE = 2
FOUND = 1
ARTIFACTS = "artifacts"


def main(arguments: list[str]) -> int:
    if find_spec("atheris") is None:
        sys.stderr.write("atheris is not installed: pip install --group fuzz\n")
        return USAGE
    if len(arguments) == 3:
        return _drive(arguments[0], int(arguments[1]), Path(arguments[2]))
    from tests.fuzz.targets import CORPUS, TARGETS

    names = [*TARGETS] if arguments[:1] == ["all"] else arguments[:1]
    if not names or names[0] not in TARGETS:
        sys.stderr.write(f"{__doc__}\nThe targets are {', '.join(TARGETS)}.\n")
        return USAGE
    before = _files(CORPUS)
    for name in names:
        with tempfile.TemporaryDirectory(prefix="hitin-atheris-") as folder:  # libFuzzer ends the process it runs in
            seconds = arguments[1] if len(arguments) > 1 else "60"
            command = [sys.executable, "-m", "tests.fuzz.atheris_driver", name, seconds, folder]
            code = subprocess.run(command, check=False, env=os.environ | {"TMPDIR": folder}).returncode
            for path in _files(Path(folder, ARTIFACTS)):  # of a crash, or of more time or memory than is allowed
                _keep(CORPUS / name, path.read_bytes())
            if code < 0:
                return FOUND
    return FOUND if _files(CORPUS) != before else 0


def _drive(name: str, seconds: int, folder: Path) -> int:
    """With what is found to be worth going on from in a folder."""
    import atheris

    with _instrumented(atheris):
        from tests.fuzz.targets import CORPUS, TARGETS
    target, seen = TARGETS[name], set[str]()

    def take(data: bytes) -> None:
        try:
            target.take(data)
        except Exception as error:  # also a failed assertion; each kind is kept once, and the search goes on
            place = traceback.extract_tb(error.__traceback__)[-1]
            if (kind := f"{type(error).__name__} {place.filename}:{place.lineno}") not in seen:
                seen.add(kind)
                _keep(CORPUS / name, data)
                sys.stderr.write(f"FOUND {kind}\n{data.hex()[:2000]}\n{traceback.format_exc()}\n")

    seeds, artifacts = folder / "seeds", folder / ARTIFACTS
    artifacts.mkdir()
    for seed in [*target.seeds(), *(path.read_bytes() for path in _files(CORPUS / name))]:
        _keep(seeds, seed)
    limits = [f"-max_total_time={seconds}", "-timeout=20", "-rss_limit_mb=4096", "-max_len=65536", "-verbosity=0"]
    atheris.Setup([sys.argv[0], str(seeds), *limits, "-print_final_stats=1", f"-artifact_prefix={artifacts}/"], take)
    atheris.Fuzz()
    return 0


def _instrumented(atheris: ModuleType) -> "contextlib.AbstractContextManager[object]":
    """What is imported within is watched: hitin itself, and the readers of the standard library that it uses."""
    watched = ["hitin", "json", "tomllib", "csv", "zipfile"]
    found: contextlib.AbstractContextManager[object] = atheris.instrument_imports(include=watched)
    return found


def _keep(folder: Path, data: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / sha256(data).hexdigest()[:12]).write_bytes(data)


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

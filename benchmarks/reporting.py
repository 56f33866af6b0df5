"""What the benchmarks of speed tell: the machine, and tables in Markdown line by line; files of them, and of plots."""

import argparse
import os
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from hitin.compare.measuring import machine
from hitin.devices import choose_device
from hitin.processor import cores
from hitin.writing import write_text

BUSY = 0.1  # of the cores
LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "onnxruntime", "scikit-learn")


class Report:
    """Markdown on standard output as it comes; with a folder, in `NAME.md` there as well, plots beside it."""

    def __init__(self, name: str, out: Path | None) -> None:
        self.name, self.out = name, out
        self.lines: list[str] = []
        self.others = Others()

    def say(self, text: str = "") -> None:
        print(text, flush=True)
        self.lines.append(text)

    def header(self, *columns: str) -> None:
        self.say("| " + " | ".join(columns) + " |")
        self.say("|---" * len(columns) + "|")

    def row(self, *cells: object) -> None:
        self.say(f"| {' | '.join(map(str, cells))} |")

    def plot(self, name: str, svg: str) -> None:
        """A picture in the file; on standard output there is none."""
        if self.out is not None:
            file = f"{self.name}_{name}.svg"
            write_text(self.out / file, [svg])
            self.lines += ["", f"![{name}]({file})"]

    def close(self) -> None:
        self.say(f"\n{others_told(self.others.cores(), cores())}")
        if self.out is not None:
            write_text(self.out / f"{self.name}.md", ["\n".join(self.lines) + "\n"])


def begun(name: str, title: str, arguments: argparse.Namespace, given: Sequence[str]) -> Report:
    """A report with its title, the command and the machine. Of paths only the last part is told."""
    report = Report(name, arguments.out)
    report.say(f"# {title}\n")
    report.say(f"`python benchmarks/{name}.py{''.join(f' {_last_part(word)}' for word in given)}`\n")
    report.say(f"{machine_told(arguments.device)}\n")
    return report


class Others:
    """What other processes take of the machine while this one and its children work; `None` where no one tells.

    Threads that wait for each other then wait for those, too: with two busy processes beside it on two cores, a call of
    torch took 192 ms in place of 3.
    """

    def __init__(self) -> None:
        self.started, self.busy, self.own = time.monotonic(), _busy_seconds(), _own_seconds()

    def cores(self) -> float | None:
        """On average since the beginning."""
        busy = _busy_seconds()
        if busy is None or self.busy is None:
            return None
        taken = busy - self.busy - (_own_seconds() - self.own)
        return max(0.0, taken / max(time.monotonic() - self.started, 1e-9))


def _own_seconds() -> float:
    """Of the processor, with those of children that have ended."""
    return sum(os.times()[:4])


def _busy_seconds() -> float | None:
    """Of all processors since the machine was started, where Linux tells."""
    try:
        first = Path("/proc/stat").read_text(encoding="ascii").partition("\n")[0].split()
    except OSError:
        return None
    user, nice, system, _, _, interrupts, soft = map(int, first[1:8])
    return (user + nice + system + interrupts + soft) / os.sysconf("SC_CLK_TCK")


def others_told(taken: float | None, own: int) -> str:
    if taken is None:
        return "What other processes took of the machine is not known."
    told = f"Other processes took {taken:.2f} of {own} cores meanwhile"
    return f"**{told}: these times, and their ratios, mean nothing.**" if taken > BUSY * own else f"{told}."


def machine_told(device: str) -> str:
    """The processor with its cores, the GPU where it is used, and the versions."""
    chosen = choose_device(device)
    processor = machine(torch.device("cpu"))
    gpu = f"{machine(chosen)['device']}, with " if chosen.type == "cuda" else ""
    versions = ", ".join(f"{name} {found}" for name in LIBRARIES if (found := _version(name)))
    told = f"hitin {processor['hitin']}, Python {processor['python']}, {versions}"
    return f"On {gpu}{processor['device']}, {cores()} cores, {torch.get_num_threads()} threads. {told}."


def _version(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def _last_part(word: str) -> str:
    return Path(word).name if "/" in word else word

"""What the benchmarks of speed tell: the machine, and tables in Markdown line by line; files of them, and of plots."""

import argparse
import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from hitin.compare.measuring import machine
from hitin.devices import choose_device
from hitin.writing import write_text

BUSY = 0.5  # of the cores
LIBRARIES = ("torch", "transformers", "accelerate", "tokenizers", "onnxruntime", "scikit-learn")


class Report:
    """Markdown on standard output as it comes; with a folder, in `NAME.md` there as well, plots beside it."""

    def __init__(self, name: str, out: Path | None) -> None:
        self.name, self.out = name, out
        self.lines: list[str] = []

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
        self.say(f"\nLoad of the machine afterwards: {load()}, which this benchmark is a part of.")
        if self.out is not None:
            write_text(self.out / f"{self.name}.md", ["\n".join(self.lines) + "\n"])


def begun(name: str, title: str, arguments: argparse.Namespace, given: Sequence[str]) -> Report:
    """A report with its title, the command and the machine. Of paths only the last part is told."""
    report = Report(name, arguments.out)
    report.say(f"# {title}\n")
    report.say(f"`python benchmarks/{name}.py{''.join(f' {_last_part(word)}' for word in given)}`\n")
    report.say(f"{machine_told(arguments.device)} Load of the machine before: {load()}.\n")
    if is_busy():
        report.say("**The machine was busy before this began: its times, and ratios of times, mean nothing.**\n")
    return report


def load() -> str:
    """Processes that ran or waited to run, over the last minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def is_busy() -> bool:
    """Whether others need the cores. Threads that wait for each other then wait for those, too: with two busy processes
    beside it on two cores, a call of torch took 192 ms in place of 3."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > BUSY * cores()


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

"""Processes that take turns: each way that is compared has one of its own, and waits while another is at work.

In one process they would disturb each other: on two cores, torch took 2.6 times as long when a session of onnxruntime
ran before each of its calls, and as long as ever on one core.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any, Self

REST = 0.1  # seconds between turns, until the threads of the last one sleep


class Turns:
    """The parent's side of one process."""

    def __init__(self, script: str, *arguments: object) -> None:
        command = [sys.executable, script, "--measure", *map(str, arguments)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def take(self, *said: object) -> Any:
        """What the process answers."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(said) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a measurement failed: {self.process.args!r}")
        time.sleep(REST)
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Its input ends, and so does the process."""
        self.process.__exit__(None, None, None)


def answer_turns(answer: Callable[..., Any]) -> None:
    """The other side: answer line by line, until there are no more. Nothing else may print."""
    out = sys.__stdout__
    assert out is not None
    for line in sys.stdin:
        out.write(json.dumps(answer(*json.loads(line))) + "\n")
        out.flush()

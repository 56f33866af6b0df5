"""What the benchmarks share: each measurement in a process of its own, and its peak memory."""

import json
import subprocess
import sys
from typing import Any

from hitin.memory import most_held


def measured(script: str, *arguments: object) -> dict[str, Any]:
    """What `script --measure ...` prints, as JSON, in a process of its own."""
    command = [sys.executable, script, "--measure", *map(str, arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def peak_kilobytes() -> int:
    """The most memory this process has held. (What `getrusage` tells may be the parent's.)"""
    held = most_held()
    if held is None:
        raise SystemExit("this benchmark needs the /proc of Linux")
    return held // 1024

"""The processes that a command starts, and whether they are gone."""

import time
from pathlib import Path


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their names."""
    children: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append((int(folder.name), name))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child, name in children.get(waiting.pop(), []):
            found[child] = name
            waiting.append(child)
    return found


def is_running(pid: int, name: str) -> bool:
    """Whether a process is there under the name that it had: numbers are used again."""
    try:
        now = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return False
    return bool(now) and now == name


def all_gone(processes: dict[int, str], seconds: float = 60) -> bool:
    """Whether none of these is running any more, after a while."""
    end = time.monotonic() + seconds
    while any(is_running(pid, name) for pid, name in processes.items()):
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True

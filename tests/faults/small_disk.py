"""A disk that is too small: a `tmpfs` in a mount namespace of its own, or a limit on the size of files."""

import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A folder that has room for so many KiB, for commands that run `within` it."""

    def __init__(self, folder: Path, holder: "subprocess.Popen[str]", enter: list[str]) -> None:
        self.folder, self._holder = folder, holder
        self.within = [*enter, "--target", str(holder.pid), "--mount"]

    @property
    def seen_from_outside(self) -> Path:
        return Path(f"/proc/{self._holder.pid}/root{self.folder}")

    def resize(self, kib: int) -> None:
        subprocess.run([*self.within, "mount", "-o", f"remount,size={kib}k", str(self.folder)], check=True)

    def copy_to(self, folder: Path) -> Path:
        shutil.copytree(self.seen_from_outside, folder, dirs_exist_ok=True)
        return folder


@contextmanager
def small_disk(folder: Path, kib: int) -> Iterator[SmallDisk]:
    """Skips where the system allows no mounts."""
    folder.mkdir(parents=True, exist_ok=True)
    for names, enter in (["-m"], ["nsenter"]), (["-r", "-m"], ["nsenter", "--user", "--preserve-credentials"]):
        holder = _held(folder, kib, names)
        if holder is None:
            continue
        try:
            yield SmallDisk(folder, holder, enter)
        finally:
            holder.communicate("")
        return
    pytest.skip("neither root nor a user namespace can mount a small disk here")


def _held(folder: Path, kib: int, names: list[str]) -> "subprocess.Popen[str] | None":
    """A process that keeps the namespace until its standard input ends."""
    mount = f'mount -t tmpfs -o size={kib}k tmpfs "$0" && echo ready && cat'
    try:
        holder = subprocess.Popen(
            ["unshare", *names, "sh", "-c", mount, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except FileNotFoundError:
        return None
    assert holder.stdout is not None
    if holder.stdout.readline() == "ready\n":
        return holder
    holder.communicate()
    return None


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Within this process, no file becomes larger than so many bytes."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))

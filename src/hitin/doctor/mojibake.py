"""Signs that a text was once read in another encoding than it was written in."""

import re

_RUN = re.compile("[^\0-\x7f]{2,}")
_NEVER_MEANT = re.compile("[\0\ufffd\u0080-\u0084\u0086-\u009f]")  # NUL, the replacement character, C1 controls


def _windows_bytes() -> dict[int, int]:
    """Characters to the bytes that Windows-1252 shows as them, with Latin-1 where that leaves a gap."""
    table = {byte: byte for byte in range(0x80, 0x100)}
    for byte in range(0x80, 0x100):
        shown = bytes([byte]).decode("cp1252", errors="ignore")
        if shown:
            table[ord(shown)] = byte
    return table


_BYTES = _windows_bytes()


def trouble_in(text: str) -> str | None:
    """The first piece of a text that looks wrongly decoded, with a little around it; `None` if there is none.

    Two or more characters in a row that, as bytes of Windows-1252, are valid UTF-8 were most likely UTF-8 before.
    """
    if text.isascii() and "\0" not in text:
        return None
    found = _NEVER_MEANT.search(text) or next((run for run in _RUN.finditer(text) if _was_utf_8(run[0])), None)
    return text[max(found.start() - 15, 0) : found.end() + 15] if found else None


def _was_utf_8(run: str) -> bool:
    raw = bytes([_BYTES.get(ord(char), 0) for char in run])
    if 0 in raw:
        return False
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True

"""Pages that are one file each: a template, filled in. What others wrote can break out of nothing in it."""

import base64
import hashlib
import json
import re

_UNSAFE = re.compile("[<>&\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_BLANK = re.compile(r"@@(\w+)@@")


def safe_json(data: object, *, indent: int | None = None) -> str:
    """JSON in which nothing can end a script element, and of which every character can be written as UTF-8."""
    separators = (",", ":") if indent is None else None
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=separators, indent=indent)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def policy_hash(source: str) -> str:
    """What a content security policy calls an inline script or style sheet that may run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


def filled(template: str, **blanks: str) -> str:
    """A template with something in place of each `@@name@@`: in one pass, so that no text can be a blank."""
    return _BLANK.sub(lambda match: blanks[match[1]], template)


def page(template: str, *, style: str, script: str, **blanks: str) -> str:
    """The same, with a style sheet and a script that the page's policy lets run, and nothing else."""
    hashes = {"style_hash": policy_hash(style), "script_hash": policy_hash(script)}
    return filled(template, style=style, script=script, **hashes, **blanks)

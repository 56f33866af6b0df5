"""`Exchange`: one request and what becomes of it, from its first byte to its line in the log."""

import itertools
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

Scope = Any
_GIVEN_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_OWN_IDS, _COUNT = secrets.token_hex(6), itertools.count(1)
PAGE_FILES = "/page/"
TEMPLATES = frozenset(
    {"/", "/healthz", "/readyz", "/metrics", "/openapi.json"}
    | {f"/v1/{name}" for name in ("predict", "explain", "taxonomy", "models")}
)
"""The paths that there are, beside those of the page's files."""


def own_id() -> str:
    """A name for a request that brings none."""
    return f"{_OWN_IDS}-{next(_COUNT)}"


@dataclass
class Exchange:
    """What is known of a request; handlers add what they find in it."""

    method: str
    path: str
    """As it was asked for."""
    headers: list[tuple[bytes, bytes]]
    id: str
    started: float = field(default_factory=time.perf_counter)
    status: int = 0
    """0 until an answer has begun."""
    texts: int = 0
    characters: int = 0
    model: str | None = None
    said: list[str] | None = None
    """The texts themselves, where they are to be logged."""
    failure: dict[str, Any] = field(default_factory=dict)
    """Where and how the service itself went wrong."""

    @classmethod
    def of(cls, scope: Scope) -> "Exchange":
        headers = scope["headers"]
        given = next((value for name, value in headers if name == b"x-request-id"), b"")
        id = given.decode() if _GIVEN_ID.fullmatch(given) else own_id()
        found = cls(scope["method"], scope["path"], headers, id)
        scope["hitin"] = found
        return found

    @property
    def template(self) -> str:
        """The path as it is counted: one of a few."""
        if self.path in TEMPLATES:
            return self.path
        return PAGE_FILES + "{name}" if self.path.startswith(PAGE_FILES) else "other"

    @property
    def counted_method(self) -> str:
        return self.method if self.method in ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE") else "other"

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.started

    def all(self, name: bytes) -> list[str]:
        """The values of a header, which may come several times."""
        return [value.decode("latin-1") for key, value in self.headers if key == name]

    def header(self, name: bytes) -> str | None:
        return next(iter(self.all(name)), None)

    def line(self) -> dict[str, Any]:
        """What is logged of it."""
        told: dict[str, Any] = {
            "request": self.id,
            "method": self.counted_method,
            "path": self.template,
            "status": self.status,
            "milliseconds": round(self.seconds * 1e3, 2),
        }
        if self.texts:
            told |= {"texts": self.texts, "characters": self.characters}
        if self.model is not None:
            told["model"] = self.model
        if self.said is not None:
            told["said"] = self.said
        return told | self.failure

"""What `hitin serve` can be told. Nothing heavy is imported here."""

import re
from dataclasses import dataclass, field

from hitin.errors import InputError

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_LONGEST_KEY = 4096
_HOST = re.compile(r"[A-Za-z0-9._-]+|[0-9A-Fa-f]*:[0-9A-Fa-f]*:[0-9A-Fa-f:.]*")  # the latter is an address of IPv6


@dataclass(frozen=True)
class Limits:
    """What is refused because it is too much."""

    body: int = 8 << 20
    """Bytes of a request's body."""
    body_seconds: float = 30
    """How long a body may take to come."""
    texts: int = 1000
    """Texts of a request."""
    characters: int = 200_000
    """Characters of a text."""
    queue: int = 4096
    """Texts that may wait for a model."""
    explanations: int = 16
    """Explanations that may wait, all models together."""
    cells: int = 4_000_000
    """Texts times labels of a request for all scores."""
    labels: int = 500_000
    """Labels that are told in an answer, all texts together."""
    limited_texts: int = 16
    """Texts of a request for `limits`."""

    def __post_init__(self) -> None:
        _check_counts(self, "body", "texts", "characters", "queue", "explanations")
        if not self.body_seconds > 0:
            raise _bad(f"body_seconds is {self.body_seconds}", "It is a number of seconds above 0.")


@dataclass(frozen=True)
class ServeSettings:
    """How models are served."""

    host: str = "127.0.0.1"
    port: int = 8000
    runtime: str = "auto"
    device: str = "auto"
    batch_size: int = 64
    """Texts that are computed together at most; 1: each request by itself."""
    limits: Limits = field(default_factory=Limits)
    api_key: str | None = field(default=None, repr=False)
    allowed_hosts: tuple[str, ...] = ()
    """The names by which the service may be called; none: on loopback its own, elsewhere any."""
    reload_every: float = 2
    """Seconds between looks at the models' folders; 0: never."""
    drain_seconds: float = 1
    """How long requests are still taken after the signal to end."""
    shutdown_seconds: float = 30
    """How long what was taken may need after that."""
    log_texts: bool = False

    def __post_init__(self) -> None:
        _check_counts(self, "batch_size")
        if not 0 <= self.port <= 65535:
            raise _bad(f"port is {self.port}", "It is from 0 to 65535; 0 takes one that is free.")
        for name in ("reload_every", "drain_seconds", "shutdown_seconds"):
            if not 0 <= getattr(self, name) < 1e6:
                raise _bad(f"{name} is {getattr(self, name)}", "It is a number of seconds from 0 on.")
        for each in self.allowed_hosts:
            if not is_host(each):
                raise _bad(
                    f"{each!r} is not the name of a host", "Give it as in labels.example.org, without port or path."
                )
        if self.api_key is not None and not is_key(self.api_key):
            raise _bad(
                "the API key cannot be sent in a header", "It is of visible ASCII characters, at least one, no spaces."
            )

    @property
    def is_loopback(self) -> bool:
        return self.host in LOOPBACK or self.host.startswith("127.")

    @property
    def hosts(self) -> frozenset[str] | None:
        """The names that the header `Host` may have, without port; `None`: any."""
        if self.allowed_hosts:
            return frozenset(each.lower() for each in self.allowed_hosts)
        return frozenset({*LOOPBACK, self.host.lower()}) if self.is_loopback else None


def is_host(name: str) -> bool:
    """Whether the header `Host`, less its port, can be this: a name, or an address."""
    return _HOST.fullmatch(name) is not None


def is_key(key: str) -> bool:
    """Whether a header can hold it."""
    return 0 < len(key) <= _LONGEST_KEY and all("!" <= character <= "~" for character in key)


def _check_counts(settings: object, *names: str) -> None:
    for name in names:
        if getattr(settings, name) < 1:
            raise _bad(f"{name} is {getattr(settings, name)}", "It is at least 1.")


def _bad(problem: str, remedy: str) -> InputError:
    """That of `hitin.option_values`, which numpy comes with: `hitin --help` would be slower."""
    return InputError(problem, kind="bad-option", remedy=remedy)

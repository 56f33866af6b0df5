"""What is answered to a request that cannot be fulfilled, and JSON as it is sent."""

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from hitin.errors import InputError

JSON = "application/json"


class Refusal(Exception):  # noqa: N818
    """A request is refused: the status, a short name for programs, and words for people, none of them the user's."""

    def __init__(
        self,
        status: int,
        kind: str,
        message: str,
        remedy: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.message, self.remedy = status, kind, message, remedy
        self.headers = dict(headers or {})

    def response(self) -> Response:
        told = {"kind": self.kind, "message": self.message, "remedy": self.remedy}
        return json_response({"error": told}, self.status, self.headers)

    @classmethod
    def of(cls, error: InputError) -> "Refusal":
        """Without the file, which is the server's own affair."""
        return cls(422, error.kind, error.message, error.remedy)


def too_many_texts(count: int, most: int) -> Refusal:
    return Refusal(413, "too-many-texts", f"there are {count:,} texts", f"Send at most {most:,}.")


def encoded(content: Any) -> bytes:
    """JSON in UTF-8; in ASCII where a name cannot be written so."""
    try:
        return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def json_response(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encoded(content), status, headers, JSON)

"""JSON as the service reads it: what is doubtful is refused."""

import gc
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from fastapi import Request, Response
from fastapi.routing import APIRoute

from hitin.serve.refusals import Refusal, too_many_texts
from hitin.serve.settings import Limits

_MOST_FIELDS = 100


def parse(body: bytes) -> Any:
    """What a body says. Not JSON: NaN and infinities, a key twice, more depth or digits than anyone means."""
    try:
        with _no_collection():
            found = json.loads(body.decode("utf-8-sig"), parse_constant=_no_number, object_pairs_hook=_once)
    except UnicodeDecodeError:
        raise Refusal(400, "bad-json", "the body is not in UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise Refusal(400, "bad-json", f"the body is not JSON: {error.msg} ({place})") from None
    except (RecursionError, ValueError):  # a number of thousands of digits is a ValueError
        raise Refusal(
            400, "bad-json", "the body is no JSON that can be read: too deep, or too large a number"
        ) from None
    if isinstance(found, dict) and len(found) > _MOST_FIELDS:  # each of which would be told
        raise Refusal(422, "bad-request", "the body: there are far more fields than are known")
    return found


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without looks for garbage, of which none is made here: among millions of lists they took ten times the rest."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _no_number(_: str) -> NoReturn:
    raise Refusal(400, "bad-json", "the body is not JSON: it has NaN or an infinity")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refusal(400, "bad-json", "the body has a key twice")
    return found


class _StrictRequest(Request):
    most_texts: int

    async def json(self) -> Any:
        found = parse(await self.body())
        texts = found.get("texts") if isinstance(found, dict) else None
        if isinstance(texts, list) and len(texts) > self.most_texts:  # before each of them is looked at
            raise too_many_texts(len(texts), self.most_texts)
        return found


class StrictRoute(APIRoute):
    """A route whose bodies are read by `parse`, with so many texts at most."""

    most_texts: int = Limits().texts

    @classmethod
    def within(cls, limits: Limits) -> type["StrictRoute"]:
        return type("StrictRoute", (cls,), {"most_texts": limits.texts})

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            strict.most_texts = self.most_texts
            return await handler(strict)

        return handle

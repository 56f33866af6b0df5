"""`Guard`: what stands before the application and sees every request and every answer.

It refuses what is too large, too slow, without the key or under a foreign name; it adds headers to answers, counts
them and logs them; and it ends the work for a client that has gone. Plain ASGI.
"""

import asyncio
import hmac
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from hitin.serve.exchange import PAGE_FILES, Exchange
from hitin.serve.logs import Log
from hitin.serve.measures import Measures
from hitin.serve.refusals import JSON, Refusal
from hitin.serve.settings import ServeSettings

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

CLIENT_GONE = 499
"""The status in the log of a request whose client did not wait."""
_OPEN = frozenset({"/", "/healthz", "/readyz"})
_HEALTH = frozenset({"/healthz", "/readyz"})
_ASKING = frozenset({"/v1/predict", "/v1/explain"})
_LINGER_SECONDS = 5
_LINGER_BYTES = 1 << 28
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


class _Gone(Exception):  # noqa: N818
    """The client has closed the connection."""


class Guard:
    """Around an application. While `ending`, connections are closed after the next answer."""

    def __init__(self, application: Application, settings: ServeSettings, measures: Measures, log: Log) -> None:
        self.application, self.settings, self.measures, self.log = application, settings, measures, log
        self.ending = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        exchange = Exchange.of(scope)
        try:
            await self._serve(exchange, scope, receive, self._sender(exchange, send))
        except _Gone:
            exchange.status = exchange.status or CLIENT_GONE
        except Exception as error:
            exchange.failure = _told(error)
            if not exchange.status:
                await internal(exchange).response()(scope, receive, self._sender(exchange, send))
        finally:
            self.measures.request(exchange.counted_method, exchange.template, exchange.status, exchange.seconds)
            self.log("request", **exchange.line())

    async def _serve(self, exchange: Exchange, scope: Any, receive: Receive, send: Send) -> None:
        try:
            self._check(exchange)
            body = await self._body(exchange, receive)
        except Refusal as refusal:
            await _refuse(refusal, scope, receive, send)
            return
        await _watched(self.application(_as_get(scope), _replay(body, receive), send), receive)

    def _sender(self, exchange: Exchange, send: Send) -> Send:
        """One that adds what every answer has."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                own = [(b"x-request-id", exchange.id.encode()), *_HEADERS]
                if self.ending:
                    own.append((b"connection", b"close"))
                names = {name.lower() for name, _ in message.get("headers", ())}
                if b"cache-control" not in names:
                    own.append((b"cache-control", b"no-store"))
                message = {**message, "headers": [*message.get("headers", ()), *own]}
            await send(message)

        return sending

    def _check(self, exchange: Exchange) -> None:
        """Refuse by what stands before the body."""
        if exchange.path not in _HEALTH:
            self._check_host(exchange)
        if exchange.path not in _OPEN and not exchange.path.startswith(PAGE_FILES):
            self._check_key(exchange)
        if exchange.path in _ASKING and exchange.method == "POST":
            _check_type(exchange)
        length = exchange.header(b"content-length")
        if length is not None and exchange.header(b"transfer-encoding") is not None:  # one of them hides a request
            raise Refusal(400, "bad-request", "the length of the body is told twice", "Send only Content-Length.")
        if length is not None and int(length) > self.settings.limits.body:  # digits only: the server has looked
            raise self._too_large()

    def _check_host(self, exchange: Exchange) -> None:
        """A page elsewhere whose name was made to point here does not get through."""
        hosts = self.settings.hosts
        if hosts is not None and not all(_name(host) in hosts for host in exchange.all(b"host") or [""]):
            raise Refusal(
                421,
                "wrong-host",
                "the service is not called by the name in the header Host",
                "Call it by its own name, or start it with --allowed-host NAME.",
            )

    def _check_key(self, exchange: Exchange) -> None:
        if self.settings.api_key is None:
            return
        wanted = self.settings.api_key.encode()
        given = [*exchange.all(b"x-api-key"), *map(_bearer, exchange.all(b"authorization"))]
        if sum(hmac.compare_digest(each.encode("latin-1"), wanted) for each in given) == 0:
            raise Refusal(
                401,
                "wrong-key" if given else "no-key",
                "the API key is wrong" if given else "the service wants an API key",
                "Send the header Authorization: Bearer KEY, or X-API-Key: KEY.",
                {"WWW-Authenticate": "Bearer"},
            )

    async def _body(self, exchange: Exchange, receive: Receive) -> bytes:
        """The whole body, unless it is too large or comes too slowly."""
        if exchange.header(b"content-length") in (None, "0") and exchange.header(b"transfer-encoding") is None:
            return b""
        try:
            async with asyncio.timeout(self.settings.limits.body_seconds):
                return await self._read(receive)
        except TimeoutError:
            raise Refusal(
                408,
                "too-slow",
                f"the body did not come within {self.settings.limits.body_seconds:g} seconds",
                "Send less at a time.",
            ) from None

    async def _read(self, receive: Receive) -> bytes:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            parts.append(message.get("body", b""))
            more = message.get("more_body", False)
            size += len(parts[-1])
            if size > self.settings.limits.body:
                raise self._too_large()
        return b"".join(parts)

    def _too_large(self) -> Refusal:
        most = self.settings.limits.body
        return Refusal(413, "too-large", f"the body has more than {most:,} bytes", "Send fewer texts at a time.")


def internal(exchange: Exchange) -> Refusal:
    """What is told when the service itself went wrong: nothing but where to look."""
    return Refusal(500, "internal", "the service went wrong", f"Its log says more of the request {exchange.id}.")


async def _refuse(refusal: Refusal, scope: Any, receive: Receive, send: Send) -> None:
    """Answer before the body was read, and then read it away: a client that still sends would not see the answer.

    One that is too slow is not waited for once more.
    """
    refusal.headers["connection"] = "close"
    left: list[Message] = []

    async def hold_the_end(message: Message) -> None:
        if message["type"] == "http.response.body":
            message, end = {**message, "more_body": True}, {**message, "body": b""}
            left.append(end)
        await send(message)

    await refusal.response()(scope, receive, hold_the_end)
    size, more = 0, refusal.status != 408
    try:
        async with asyncio.timeout(_LINGER_SECONDS):
            while more and size < _LINGER_BYTES:
                message = await receive()
                more = message["type"] == "http.request" and message.get("more_body", False)
                size += len(message.get("body", b""))
    except TimeoutError:
        pass
    for end in left:
        await send(end)


def _as_get(scope: Any) -> Any:
    """A request for the head alone is answered as one for all of it; the server leaves out the body."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


def _replay(body: bytes, receive: Receive) -> Receive:
    """What gives the body that was read, and then what else comes."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return waiting.pop() if waiting else await receive()

    return replay


async def _watched(work: Awaitable[None], receive: Receive) -> None:
    """Do the work, unless the client goes away meanwhile."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_until_gone(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise _Gone
        task.result()
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _check_type(exchange: Exchange) -> None:
    given = (exchange.header(b"content-type") or "").lower()
    kind, _, parameters = given.partition(";")
    charset = parameters.strip().removeprefix("charset=").strip('" ')
    if kind.strip() != JSON or charset not in ("", "utf-8", "utf8"):
        raise Refusal(415, "wrong-type", "the body is not said to be JSON in UTF-8", f"Send Content-Type: {JSON}.")
    if (exchange.header(b"content-encoding") or "identity").lower() != "identity":
        raise Refusal(415, "wrong-type", "the body is compressed", "Send it as it is, without Content-Encoding.")


def _name(host: str) -> str:
    """A name without port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


def _bearer(value: str) -> str:
    scheme, _, key = value.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _told(error: BaseException) -> dict[str, Any]:
    """What went wrong and where, without the words of the error: they may hold the text."""
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return {"failure": type(error).__name__, "at": [f"{each.filename}:{each.lineno} {each.name}" for each in frames]}

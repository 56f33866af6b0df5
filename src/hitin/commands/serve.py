"""`hitin serve`."""

import os
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from hitin.commands import options
from hitin.commands.runtimes import Runtime, RuntimeName
from hitin.console import INTERRUPTED, say
from hitin.serve.settings import Limits, ServeSettings

API_KEY = "HITIN_API_KEY"
_MODULES = ("fastapi", "uvicorn", "prometheus_client")
_USUAL, _USUAL_LIMITS = ServeSettings(), Limits()


def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Folders of models, also exported ones; NAME=FOLDER names one."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen at; 0.0.0.0 for all of this machine.")] = _USUAL.host,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes one that is free.")] = _USUAL.port,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser when it is ready.")] = False,
    runtime: Runtime = RuntimeName.auto,
    device: options.Device = options.DeviceName.auto,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Texts of several requests that are computed together at most.")
    ] = _USUAL.batch_size,
    no_batching: Annotated[
        bool, typer.Option("--no-batching", help="Compute each request by itself, as with --batch-size 1.")
    ] = False,
    api_key_file: Annotated[
        str | None,
        typer.Option("--api-key-file", metavar="FILE", help=f"A file with the key that requests need; or {API_KEY}."),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allowed-host",
            metavar="NAME",
            help="A name by which the service may be called (the header Host); may be given again. Without: on "
            "loopback its own names, elsewhere any.",
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1, help="Bytes of a request at most.")] = _USUAL_LIMITS.body,
    max_texts: Annotated[int, typer.Option(min=1, help="Texts of a request at most.")] = _USUAL_LIMITS.texts,
    max_characters: Annotated[
        int, typer.Option(min=1, help="Characters of a text at most.")
    ] = _USUAL_LIMITS.characters,
    queue: Annotated[int, typer.Option(min=1, help="Texts that may wait for a model.")] = _USUAL_LIMITS.queue,
    body_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds that a request may take to come.")
    ] = _USUAL_LIMITS.body_seconds,
    reload_every: Annotated[
        float, typer.Option(min=0, help="Seconds between looks for changes of the folders; 0: only at SIGHUP.")
    ] = _USUAL.reload_every,
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds in which requests are still taken after the signal to end.")
    ] = _USUAL.drain_seconds,
    shutdown_seconds: Annotated[
        float, typer.Option(min=0, help="Seconds that what was taken may need after that.")
    ] = _USUAL.shutdown_seconds,
    log_texts: Annotated[
        bool, typer.Option("--log-texts", help="Log the texts too. Without, what people send is written nowhere.")
    ] = False,
) -> None:
    """Answer requests over HTTP, with a page to try models by hand.

    POST /v1/predict and /v1/explain, GET /v1/taxonomy and /v1/models; /healthz, /readyz, /metrics and /openapi.json.
    Requests that come together are computed together. A model whose folder changes is loaded anew without a break.
    Ctrl-C or SIGTERM ends it when all that was taken is answered. Logs are lines of JSON on standard error. Needs the
    extra `serve`.

    Examples:

        hitin serve model --open
        hitin serve tickets diagnoses=runs/icd10 --port 8080
        hitin serve model --runtime onnx --host 0.0.0.0 --api-key-file key.txt
        curl -H 'Content-Type: application/json' -d '{"text": "my order is late"}' http://127.0.0.1:8000/v1/predict
    """
    from hitin.extras import need

    for module in _MODULES:
        need(module, extra="serve", purpose="hitin serve")
    settings = ServeSettings(
        host=host,
        port=port,
        runtime=runtime.value,
        device=device.value,
        batch_size=1 if no_batching else batch_size,
        limits=Limits(
            body=max_body, texts=max_texts, characters=max_characters, queue=queue, body_seconds=body_seconds
        ),
        api_key=_api_key(api_key_file),
        allowed_hosts=tuple(allowed_host or ()),
        reload_every=reload_every,
        drain_seconds=drain_seconds,
        shutdown_seconds=shutdown_seconds,
        log_texts=log_texts,
    )
    if not settings.is_loopback and settings.api_key is None:
        say(f"warning: whoever reaches {settings.host} can use the service: set {API_KEY} or --api-key-file")

    def ready(address: str) -> None:
        say(f"serving at {address} (Ctrl-C ends it)")
        if open_page:
            _open(address)

    from hitin.serve.running import run

    if not run(models, settings, ready=ready):
        _leave()


def offer_page(model: str) -> None:
    """Where a person is at the terminal: serve a model now and open its page, if they like."""
    has_extra = all(find_spec(module) for module in _MODULES)
    if not (has_extra and _person_answers()):
        return
    with suppress(typer.Abort):  # Ctrl-C or the end of input is a no
        if typer.confirm("Open its page in the browser now?", default=False):
            serve([model], port=0, open_page=True)


def _person_answers() -> bool:
    streams = (sys.stdin, sys.stdout)
    return "CI" not in os.environ and all(stream is not None and stream.isatty() for stream in streams)


def _open(address: str) -> None:
    """In a thread: a browser of the terminal keeps its caller waiting."""
    import threading
    import webbrowser

    def opening() -> None:
        with suppress(webbrowser.Error, OSError):
            webbrowser.open(address)

    threading.Thread(target=opening, name="hitin-browser", daemon=True).start()


def _leave() -> None:
    """End now, whatever threads still compute."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    os._exit(INTERRUPTED)


def _api_key(file: str | None) -> str | None:
    """From a file, or else from the environment; an empty one is refused with the settings, not taken for none."""
    from hitin.errors import InputError, first_line

    if file is None:
        return os.environ.get(API_KEY)
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"the API key cannot be read: {first_line(error)}", kind="unreadable", file=file, remedy="Name its file."
        ) from error

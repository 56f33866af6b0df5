"""The routes of the service, and its OpenAPI document."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hitin import __version__
from hitin.errors import InputError, MissingExtraError
from hitin.serve import schemas
from hitin.serve.exchange import Exchange
from hitin.serve.guard import Guard, internal
from hitin.serve.measures import CONTENT_TYPE
from hitin.serve.page_files import INDEX, PageFile, read_page
from hitin.serve.refusals import JSON, Refusal, json_response
from hitin.serve.service import Service
from hitin.serve.strict_json import StrictRoute

_DESCRIPTION = "Labels of a taxonomy for texts, how probable they are, and which words decided."
_ERRORS = {
    400: "The body is no JSON.",
    401: "The API key is missing or wrong.",
    404: "There is no such model, or no such page.",
    408: "The body came too slowly.",
    413: "The body, a text or the number of texts is too large.",
    415: "The body is not said to be JSON, or is compressed.",
    421: "The service is not called by the name in the header Host.",
    422: "What is asked for makes no sense.",
    429: "Too much waits already; the header Retry-After says when to ask again.",
    500: "The service went wrong.",
    503: "The models are being loaded, or the service is ending.",
}
_ASKED = (400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503)
_TOLD = (401, 404, 408, 413, 421, 422, 500, 503)
_OPEN = (408, 413, 421, 500)
_TEXT = {"content": {"text/plain": {"schema": {"type": "string"}}}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of answers that are errors."""
    return {status: {"model": schemas.ErrorAnswer, "description": _ERRORS[status]} for status in statuses}


def application(service: Service) -> Guard:
    """The whole service as an ASGI application."""
    app = FastAPI(
        title="hitin",
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.include_router(_answers(service))
    app.include_router(_states(service))
    app.include_router(_page(read_page()))
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(InputError, _input_error)
    app.add_exception_handler(MissingExtraError, _missing_extra)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _failed)
    document = _openapi(app, has_key=service.settings.api_key is not None)
    app.openapi = lambda: document  # type: ignore[method-assign]
    return Guard(app, service.settings, service.measures, service.log)


def _answers(service: Service) -> APIRouter:
    """What models answer."""
    routes = APIRouter(prefix="/v1", route_class=StrictRoute.within(service.settings.limits))

    @routes.post("/predict", response_model=schemas.PredictAnswer, responses=errors(*_ASKED), summary="Labels of texts")
    async def predict(asked: schemas.PredictRequest, request: Request) -> Response:
        return Response(await service.predict(asked, _exchange(request)), media_type=JSON)

    @routes.post(
        "/explain", response_model=schemas.ExplainAnswer, responses=errors(*_ASKED), summary="Which words decided"
    )
    async def explain(asked: schemas.ExplainRequest, request: Request) -> Response:
        return Response(await service.explain(asked, _exchange(request)), media_type=JSON)

    @routes.get(
        "/taxonomy",
        response_model=schemas.TaxonomyAnswer,
        responses={304: {"description": "The same as If-None-Match names."}, **errors(*_TOLD)},
        summary="The labels of a model",
    )
    async def taxonomy(
        request: Request, model: str | None = Query(None, description="The model by name; without, the first.")
    ) -> Response:
        body, id = service.model(model).taxonomy_answer
        return _tagged(request, body, JSON, f'"{id}"')

    @routes.get("/models", response_model=schemas.ModelsAnswer, responses=errors(*_TOLD), summary="What is served")
    async def models() -> Response:
        return json_response(service.list_models())

    return routes


def _states(service: Service) -> APIRouter:
    """What is told of the service itself."""
    routes = APIRouter()

    @routes.get("/healthz", response_model=schemas.StateAnswer, responses=errors(*_OPEN), summary="Does it live?")
    async def healthz() -> Response:
        return json_response({"status": "alive"})

    @routes.get(
        "/readyz",
        response_model=schemas.StateAnswer,
        responses={503: {"model": schemas.StateAnswer, "description": _ERRORS[503]}, **errors(*_OPEN)},
        summary="Does it take requests?",
    )
    async def readyz() -> Response:
        return json_response({"status": service.state}, 200 if service.state == "ready" else 503)

    @routes.get(
        "/metrics",
        response_class=Response,
        responses={200: _TEXT | {"description": "Prometheus text"}, **errors(401, *_OPEN)},
        summary="What was done so far",
    )
    async def metrics() -> Response:
        return Response(service.measures.text(), media_type=CONTENT_TYPE)

    return routes


def _page(files: Mapping[str, PageFile]) -> APIRouter:
    routes = APIRouter(include_in_schema=False)

    def file(name: str, request: Request) -> Response:
        if name not in files:
            raise Refusal(404, "no-page", "there is no such page")
        found = files[name]
        return _tagged(request, found.content, found.type, found.tag)

    @routes.get("/")
    async def index(request: Request) -> Response:
        return file(INDEX, request)

    @routes.get("/page/{name}")
    async def page_file(name: str, request: Request) -> Response:
        return file(name, request)

    return routes


def _tagged(request: Request, body: bytes, kind: str, tag: str) -> Response:
    """The body, or only that it is the one which the client has."""
    headers = {"ETag": tag, "Cache-Control": "no-cache"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if tag in known or known == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(body, headers=headers, media_type=kind)


def _exchange(request: Request) -> Exchange:
    found: Exchange = request.scope["hitin"]
    return found


# Errors, each told in the same form.


async def _refused(_: Request, error: Any) -> Response:
    return error.response()  # type: ignore[no-any-return]


async def _input_error(_: Request, error: Any) -> Response:
    return Refusal.of(error).response()


async def _missing_extra(_: Request, error: Any) -> Response:
    message, _line, remedy = str(error).partition("\n")
    return Refusal(422, "missing-extra", message, remedy or None).response()


async def _invalid(_: Request, error: Any) -> Response:
    """The first thing that is wrong, by its place and kind; never what was sent."""
    first = error.errors()[0]
    place = ".".join(str(each) for each in first["loc"][1:] if isinstance(each, int) or each in _FIELDS)
    words = _WORDS.get(first["type"], first["msg"] if first["type"] not in _ECHOING else "it is not as it should be")
    message = f"{place or 'the body'}: {words}"
    return Refusal(422, "bad-request", message, "GET /openapi.json describes what can be asked.").response()


_FIELDS = frozenset({*schemas.PredictRequest.model_fields, *schemas.ExplainRequest.model_fields})
_WORDS = {
    "extra_forbidden": "there is a field that is not known",
    "missing": "it is missing",
    "model_attributes_type": "it is not an object",
}
_ECHOING = frozenset({"value_error", "assertion_error"})


async def _http_error(_: Request, error: Any) -> Response:
    if isinstance(error.__cause__, Refusal):  # of a body, which FastAPI makes an error of its own
        return error.__cause__.response()
    if error.status_code == 405:
        methods = set(error.headers["Allow"].split(", "))
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        return Refusal(
            405, "wrong-method", "this path is not asked so", f"Use {allowed}.", {"Allow": allowed}
        ).response()
    kinds = {404: ("no-page", "there is no such page")}
    kind, message = kinds.get(error.status_code, ("bad-request", "the request cannot be understood"))
    return Refusal(error.status_code, kind, message, None, error.headers).response()


async def _failed(request: Request, _: Exception) -> Response:
    return internal(_exchange(request)).response()


def _openapi(app: FastAPI, *, has_key: bool) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    if has_key:
        schemes = {
            "bearer": {"type": "http", "scheme": "bearer"},
            "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        }
        document["components"]["securitySchemes"] = schemes
        for path, operations in document["paths"].items():
            if path not in ("/healthz", "/readyz"):
                for operation in operations.values():
                    operation["security"] = [{name: []} for name in schemes]
    return document

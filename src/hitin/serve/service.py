"""`Service`: the models at work, and what they answer. Nothing of HTTP but the refusals."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.serve.batching import Closed, QueueFull
from hitin.serve.exchange import Exchange
from hitin.serve.logs import Log
from hitin.serve.measures import Measures
from hitin.serve.models import Loading, Models, ServedModel
from hitin.serve.predicting import check_size, check_texts, decisions_for, predict_answer
from hitin.serve.refusals import Refusal, encoded
from hitin.serve.schemas import ExplainRequest, PredictRequest
from hitin.serve.settings import ServeSettings

T = TypeVar("T")
State = Literal["loading", "ready", "ending"]

_CELLS_AT_ONCE = 50_000  # texts times labels that are decided on without a thread: some milliseconds
_TRIES = 5  # a model may be replaced while it is asked


class Service:
    """What the routes call. `models` are there from `load` on."""

    def __init__(self, folders: Sequence[str], settings: ServeSettings, log: Log | None = None) -> None:
        self.folders, self.settings, self.log = list(folders), settings, log or Log()
        self.measures = Measures()
        self.state: State = "loading"
        self.models: Models | None = None
        self._explaining = ThreadPoolExecutor(1, thread_name_prefix="hitin-explains")
        self._explanations = threading.BoundedSemaphore(settings.limits.explanations + 1)

    def load(self) -> None:
        """Load all models; what is wrong with one is raised."""
        loading = Loading(
            runtime=self.settings.runtime,
            device=self.settings.device,
            batch=self.settings.batch_size,
            queue=self.settings.limits.queue,
            told=self.measures.batch,
        )
        self.models = Models.load(self.folders, loading)
        self.measures.watch(self.models)

    def look(self, *, again: bool = False) -> None:
        """Load anew what has changed in the folders; and try `again` what could not be loaded."""
        if self.models is None:
            return
        before = dict(self.models.problems)
        for name in self.models.look(again=again):
            self.measures.reload(name, "loaded")
            self.log("model loaded anew", model=name)
        for name, problem in self.models.problems.items():
            if before.get(name) != problem:
                self.measures.reload(name, "refused")
                self.log("model not loaded anew", model=name, problem=problem)

    def close(self) -> None:
        """Answer what was taken, and take nothing more."""
        self._explaining.shutdown(wait=True, cancel_futures=True)
        if self.models is not None:
            self.models.close()

    def model(self, name: str | None = None) -> ServedModel:
        if self.models is None:
            raise Refusal(503, "loading", "the models are being loaded", "Ask again soon.", {"Retry-After": "1"})
        found = self.models.get(name)
        if found is None:
            raise Refusal(404, "no-model", "there is no model of that name", "GET /v1/models tells their names.")
        return found

    def list_models(self) -> dict[str, Any]:
        self.model()
        assert self.models is not None
        return {"models": [each.summary(self.models.problems.get(each.name)) for each in self.models.all()]}

    async def predict(self, asked: PredictRequest, exchange: Exchange) -> bytes:
        texts = asked.all_texts
        served = self._note(exchange, asked.model, texts)
        check_size(asked, texts, len(served.taxonomy), self.settings.limits)
        decisions_for(asked, served)  # refused before it is computed
        served, logits = await self._logits(asked.model, texts)

        def answer() -> bytes:
            return predict_answer(asked, served, decisions_for(asked, served), logits, self.settings.limits)

        is_much = len(texts) * len(served.taxonomy) * (100 if asked.limits else 1) > _CELLS_AT_ONCE
        return await asyncio.to_thread(answer) if is_much else answer()

    async def _logits(self, name: str | None, texts: list[str]) -> tuple[ServedModel, NDArray[np.float32]]:
        """What a model says, and the model: perhaps one that took its place just now."""
        for _ in range(_TRIES):
            served = self.model(name)
            try:
                return served, await asyncio.wrap_future(served.computing.submit(texts))
            except Closed:
                continue
            except QueueFull:
                raise _busy("too many texts wait") from None
        raise Refusal(503, "ending", "the service is ending", None, {"Retry-After": "1"})

    async def explain(self, asked: ExplainRequest, exchange: Exchange) -> bytes:
        served = self._note(exchange, asked.model, [asked.text])
        check_texts([asked.text], self.settings.limits)
        decisions = decisions_for(asked, served)

        def explained() -> bytes:
            from hitin.serve.explaining import explain_answer

            return encoded(explain_answer(asked, served, decisions))

        return await self._in_turn(explained)

    async def _in_turn(self, work: Callable[[], T]) -> T:
        """One after the other in a thread, only a few of which may wait."""
        if not self._explanations.acquire(blocking=False):
            raise _busy("too many explanations wait")
        future = self._explaining.submit(work)
        future.add_done_callback(lambda _: self._explanations.release())
        return await asyncio.wrap_future(future)

    def _note(self, exchange: Exchange, name: str | None, texts: list[str]) -> ServedModel:
        exchange.texts, exchange.characters = len(texts), sum(map(len, texts))
        if self.settings.log_texts:
            exchange.said = texts
        served = self.model(name)
        exchange.model = served.name
        return served


def _busy(message: str) -> Refusal:
    return Refusal(429, "busy", message, "Ask again after the seconds of Retry-After.", {"Retry-After": "1"})

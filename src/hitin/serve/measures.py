"""What the service tells of itself to Prometheus."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from hitin import __version__
from hitin.serve.models import Models

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Measures:
    """In a registry of its own, so that several services of a process do not mix."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "hitin_requests", "Requests answered.", ["method", "path", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "hitin_request_seconds", "Seconds of a request.", ["path"], buckets=_SECONDS, registry=self.registry
        )
        self._texts = Counter("hitin_texts", "Texts computed.", ["model"], registry=self.registry)
        self._batches = Histogram(
            "hitin_batch_texts", "Texts of a batch.", ["model"], buckets=_SIZES, registry=self.registry
        )
        self._reloads = Counter(
            "hitin_model_reloads", "Looks at a changed folder.", ["model", "outcome"], registry=self.registry
        )
        Gauge("hitin_build", "The version.", ["version"], registry=self.registry).labels(__version__).set(1)
        ProcessCollector(registry=self.registry)

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        self._requests.labels(method, path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, model: str, texts: int) -> None:
        self._batches.labels(model).observe(texts)
        self._texts.labels(model).inc(texts)

    def reload(self, model: str, outcome: str) -> None:
        """`loaded` or `refused`."""
        self._reloads.labels(model, outcome).inc()

    def watch(self, models: Models) -> None:
        """Tell from now on how many texts wait, and which folders are not what is served."""
        self.registry.register(_OfModels(models))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _OfModels(Collector):
    """What is looked up when it is asked for."""

    def __init__(self, models: Models) -> None:
        self.models = models

    def collect(self) -> Iterable[GaugeMetricFamily]:
        waiting = GaugeMetricFamily("hitin_waiting_texts", "Texts that wait.", labels=["model"])
        problem = GaugeMetricFamily("hitin_model_problem", "1: the folder cannot be loaded anew.", labels=["model"])
        for served in self.models.all():
            waiting.add_metric([served.name], served.computing.waiting)
            problem.add_metric([served.name], float(served.name in self.models.problems))
        return [waiting, problem]

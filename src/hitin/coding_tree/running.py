"""One loop, run two ways: as it stands on Python lists, or compiled by numba on arrays.

A kernel is a function over numbers and sequences of numbers only. It is written once, so that both ways give the
same result; numba (the extra `fast`) is imported only when a graph is large or when it is asked for. An empty list is
made by taking the one element out, so that numba knows what will be in it.
"""

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.errors import MissingExtraError
from hitin.extras import need

LARGE = 100_000  # vertices and edges from which starting numba pays

Kernel = TypeVar("Kernel", bound=Callable[..., Any])
_KERNELS: dict[str, FunctionType] = {}


def kernel(function: Kernel) -> Kernel:
    """Mark a function as one that `Runner` may compile; it can call other kernels."""
    assert isinstance(function, FunctionType)
    assert function.__name__ not in _KERNELS, "kernels see each other by their names, which must differ"
    _KERNELS[function.__name__] = function
    return function


class Runner:
    """Runs kernels and makes the sequences that they work on."""

    def __init__(self, compiled: bool) -> None:
        self.compiled = compiled
        self._kernels: dict[str, Any] = _compiled_kernels() if compiled else dict(_KERNELS)

    @classmethod
    def for_size(cls, size: int, compiled: bool | None) -> "Runner":
        """Compiled if asked for, or when it is worth it and numba is there; `size` is that of the graph."""
        return cls(size >= LARGE and can_compile() if compiled is None else compiled)

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._kernels[function.__name__](*arguments)

    def sequence(self, array: NDArray[Any]) -> Any:
        """A sequence of its own with the numbers of an array, fast to index one by one."""
        return array.copy() if self.compiled else array.tolist()

    def ints(self, size: int, fill: int = 0) -> Any:
        return np.full(size, fill, dtype=np.int64) if self.compiled else [fill] * size

    def floats(self, size: int, fill: float = 0.0) -> Any:
        return np.full(size, fill, dtype=np.float64) if self.compiled else [float(fill)] * size

    def flags(self, size: int, fill: bool = False) -> Any:
        return np.full(size, fill, dtype=np.bool_) if self.compiled else [fill] * size

    def dictionary(self) -> Any:
        """From whole numbers to whole numbers."""
        if not self.compiled:
            return {}
        numba = _numba()
        return numba.typed.Dict.empty(numba.int64, numba.int64)


def can_compile() -> bool:
    """Whether numba is there and can be imported."""
    try:
        _numba()
    except MissingExtraError:
        return False
    return True


def _numba() -> Any:
    return need("numba", extra="fast", purpose="compiling the construction of coding trees")


@cache
def _compiled_kernels() -> dict[str, Any]:
    """Every kernel compiled (when first called, and kept on disk), seeing the others compiled too."""
    numba = _numba()
    modules = sorted({function.__module__ for function in _KERNELS.values()})
    source = "".join(inspect.getsource(sys.modules[module]) for module in modules)
    version = hashlib.sha256(source.encode()).hexdigest()[:12]
    compiled: dict[str, Any] = {}
    scopes: list[dict[str, Any]] = []
    for name, function in _KERNELS.items():
        scopes.append(dict(function.__globals__))
        copy = FunctionType(function.__code__, scopes[-1], name, function.__defaults__, function.__closure__)
        copy.__qualname__ = f"{name}_{version}"  # names numba's file, so that none of an older source is taken
        copy.__module__ = function.__module__
        compiled[name] = _compiler(numba, copy)
    for scope in scopes:
        scope.update(compiled)
    return compiled


def _compiler(numba: Any, function: FunctionType) -> Any:
    """What compiles a function when it is called, from disk if it can be kept there."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's can be written to
        return numba.njit(function)


@kernel
def paired(first: int, second: int, count: int) -> int:
    """Two names as one number, the smaller first."""
    return min(first, second) * count + max(first, second)


@kernel
def found(cluster: list[int], vertex: int) -> int:
    """The cluster of a vertex, by union-find that halves the way as it goes."""
    while cluster[vertex] != vertex:
        cluster[vertex] = cluster[cluster[vertex]]
        vertex = cluster[vertex]
    return vertex


@kernel
def rounded(number: float) -> float:
    """To 40 bits, so that numbers which are equal on paper are equal here."""
    head = 8193.0 * number
    return head - (head - number)

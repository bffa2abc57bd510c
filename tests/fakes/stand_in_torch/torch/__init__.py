"""Stand-in for torch where a test is about what stands around a scan's worker: as much as the
worker asks of torch on a CPU, without the seconds that importing torch takes.

Every model file is the same model, of one input `x` and STAND_IN_OPERATORS operators.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

from torch.utils import _python_dispatch

__version__ = "0+stand.in"
OPERATORS = int(os.environ.get("STAND_IN_OPERATORS", "1"))
version = SimpleNamespace()
cuda = SimpleNamespace(is_available=lambda: False)


class device:  # noqa: N801  # torch's own name
    """A device by its name, such as cpu or cuda:1."""

    def __init__(self, name: str) -> None:
        self.type, _, index = name.partition(":")
        self.index = int(index) if index else None

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Tensor:
    """An array, as far as its size goes."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array

    def numel(self) -> int:
        return int(self._array.size)

    def element_size(self) -> int:
        return int(self._array.itemsize)


class _Module:
    forward = SimpleNamespace(
        schema=SimpleNamespace(arguments=[SimpleNamespace(name="self"), SimpleNamespace(name="x")])
    )

    def eval(self) -> _Module:
        return self

    def parameters(self) -> list[Tensor]:
        return []

    def buffers(self) -> list[Tensor]:
        return []

    def __call__(self, x: Tensor) -> Tensor:
        for _ in range(OPERATORS):
            x = _python_dispatch.call(_relu, x)
        return x


def _relu(x: Tensor) -> Tensor:
    return x


jit = SimpleNamespace(load=lambda path, map_location: _Module())


@contextmanager
def no_grad() -> Iterator[None]:
    yield


def from_numpy(array: np.ndarray) -> Tensor:
    return Tensor(array)


def set_num_threads(count: int) -> None:
    del count


def get_num_threads() -> int:
    return 1

"""Stand-in for deepsparse 1.8.0, as far as the worker uses it.

Its engine checks what the real one checks, rewrites the file whose shapes it is to fix, and answers
with zeros. Variables say how it behaves:

    STAND_IN_DEEPSPARSE_REFUSES  importing it raises these words, as on a CPU that it does not know
    STAND_IN_DEEPSPARSE_SHARE    the share of operators that it supports, 0.8047 where it is not set
    STAND_IN_DEEPSPARSE_EMPTY    it has no engine, as 1.9.0
    STAND_IN_DEEPSPARSE_LOG      a file to which each engine adds what it was made with, as JSON

The words of errors are those of deepsparse/cpu.py and deepsparse/utils/onnx.py.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx

__version__ = "1.8.0"

if os.environ.get("STAND_IN_DEEPSPARSE_REFUSES"):
    raise OSError("Neural Magic: " + os.environ["STAND_IN_DEEPSPARSE_REFUSES"])


class _Engine:
    """An engine for one batch size, on a file that it rewrites."""

    cpu_avx_type, cpu_vnni = "avx512", True

    def __init__(
        self,
        model: str,
        batch_size: int | None = 1,
        num_cores: int | None = None,
        num_streams: int | None = None,
        scheduler: Any = None,
        input_shapes: list[list[int]] | None = None,
    ) -> None:
        graph = onnx.load(model)
        dynamic = input_shapes is None
        for entry, shape in zip(graph.graph.input, input_shapes or (), strict=True):
            dims = entry.type.tensor_type.shape.dim
            assert len(dims) == len(shape), f"Input '{entry.name}' shape doesn't match"
            for dim, size in zip(dims, shape, strict=True):
                dim.dim_value = size
        onnx.save(graph, model)
        self._shapes = [tuple(shape) for shape in input_shapes or ()]
        share = float(os.environ.get("STAND_IN_DEEPSPARSE_SHARE", "0.8047"))
        self.fraction_of_supported_ops = 0.0 if dynamic else share
        log = os.environ.get("STAND_IN_DEEPSPARSE_LOG")
        if log:
            made = {"model": model, "batch": batch_size, "cores": num_cores, "shapes": input_shapes}
            with Path(log).open("a", encoding="utf-8") as file:
                file.write(json.dumps(made) + "\n")

    def run(self, arrays: list[Any], val_inp: bool = True) -> list[Any]:
        """Zeros, one row per item; raises ValueError for other shapes than it was compiled for."""
        given = [array.shape for array in arrays]
        if val_inp and given != self._shapes:
            raise ValueError(f"compiled for {self._shapes}, got {given}")
        return [np.zeros((arrays[0].shape[0], 1), np.float32)]


if not os.environ.get("STAND_IN_DEEPSPARSE_EMPTY"):
    Engine = _Engine

"""Inputs and outputs in memory that the server maps too, of the system or of a device
(device_memory): then only names and offsets travel.

Triton's extension:
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_shared_memory.md
"""

from __future__ import annotations

import http.client
import json
from typing import Any, Dict, List, Mapping, Sequence, Tuple

import numpy as np

from profharness_workloads.loadgen.inputs import Prepared
from profharness_workloads.loadgen.messages import DTYPES, Region, Tensor
from profharness_workloads.loadgen.server_side import ask
from profharness_workloads.loadgen.settings import Model, Server
from profharness_workloads.shared import leftovers
from profharness_workloads.shared.protocol import MISSING, Refusal

ALIGNED = 64


class SharedTensors:
    """One region for the distinct inputs, one with a place for each slot's outputs where their size
    is known. A context.
    """

    def __init__(
        self,
        servers: Sequence[Server],
        model: Model,
        prepared: Prepared,
        slots: int,
        memory: Any,
    ):
        self._servers, self._names = servers, []  # type: Sequence[Server], List[str]
        self._memory = memory
        self._model = model
        rows = max((request[0].array.shape[0] for request in prepared.requests), default=1)
        self._sizes = _output_sizes(model, rows)
        self._slots = slots
        self.requests: Tuple[Tuple[Tensor, ...], ...] = prepared.requests

    def __enter__(self) -> "SharedTensors":  # noqa: PYI034 - typing.Self came with 3.11
        leftovers.sweep(leftovers.SHARED_MEMORY)
        try:
            self.requests = self._share_inputs()
            self._outputs = (
                self._region("out", sum(self._sizes.values()) * self._slots) if self._sizes else ""
            )
        except BaseException:  # the regions must not outlive us, whatever ends this
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        for name in self._names:
            for server in self._servers:
                try:
                    ask(server, "POST", self._page(name, "unregister"))
                except (OSError, http.client.HTTPException):
                    pass  # a server that is gone maps nothing
            self._memory.remove(name)
        self._names = []

    def outputs(self, slot: int) -> Mapping[str, Region]:
        """Where the answers of a slot go; empty where the sizes are not known beforehand."""
        regions: Dict[str, Region] = {}
        at = sum(self._sizes.values()) * (slot % self._slots)
        for name, size in self._sizes.items():
            regions[name] = Region(self._outputs, at, size)
            at += size
        return regions

    def _share_inputs(self) -> Tuple[Tuple[Tensor, ...], ...]:
        places: List[List[int]] = []
        total = 0
        for request in self.requests:
            places.append([])
            for tensor in request:
                places[-1].append(total)
                total += -(-tensor.array.nbytes // ALIGNED) * ALIGNED
        name = self._region("in", total)
        pieces = {
            at: tensor.array.tobytes()
            for request, offsets in zip(self.requests, places)
            for tensor, at in zip(request, offsets)
        }
        self._memory.fill(name, pieces, total)
        return tuple(
            tuple(
                tensor._replace(shared=Region(name, at, int(tensor.array.nbytes)))
                for tensor, at in zip(request, offsets)
            )
            for request, offsets in zip(self.requests, places)
        )

    def _region(self, kind: str, size: int) -> str:
        """Make a region and have every server map it. Raises Refusal when one of them cannot."""
        name = "%s%d" % (leftovers.marked(kind, "_"), len(self._names))
        self._names.append(name)
        body = json.dumps(self._memory.make(name, size)).encode("ascii")
        for server in self._servers:
            try:
                status, answer = ask(server, "POST", self._page(name, "register"), body)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 0, str(error).encode("utf-8")
            if status != 200:
                text = answer.decode("utf-8", "replace")[:200]
                hint = (
                    "shared memory works on the server's own host, where the server allows it; "
                    "that of a device needs a server that was built for such devices"
                )
                raise Refusal("the server does not take shared memory: %s" % text, hint, MISSING)
        return name

    def _page(self, name: str, what: str) -> str:
        return "/v2/%s/region/%s/%s" % (self._memory.page, name, what)


def _output_sizes(model: Model, rows: int) -> Dict[str, int]:
    """Bytes of each output of a request, rounded up for alignment; empty unless all shapes are
    known.
    """
    sizes = {}
    for output in model.outputs:
        dims: List[Any] = list(output.get("shape") or ())
        dtype = DTYPES.get(str(output.get("dtype") or output.get("datatype") or ""))
        if dtype is None or any(n < 0 for n in dims):
            return {}
        items = rows if model.max_batch_size else 1
        nbytes = items * int(np.prod(dims, dtype=np.int64)) * np.dtype(dtype).itemsize
        sizes[str(output["name"])] = -(-nbytes // ALIGNED) * ALIGNED
    return sizes

"""The load generator's client worker with a library in place of our own protocol code.

It is started as the worker itself is, with the library's name in LOAD_LIBRARY; all else is the
same: inputs, messages, the warm-up, the window, CPU clocks, records.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    _here = Path(__file__).resolve().parent
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != _here]
    sys.path[:0] = [str(_here.parent), str(_here.parents[1] / "wrappers")]

from load_clients import call_loops
from profharness_workloads.loadgen import crew
from profharness_workloads.loadgen.connection import Target
from profharness_workloads.loadgen.messages import GRPC_SERVICE
from profharness_workloads.loadgen.settings import ClientSpec, Server, read_client_spec
from profharness_workloads.loadgen.triton_client import LoadClient
from profharness_workloads.shared import worker
from profharness_workloads.shared.protocol import Settings

METHOD = GRPC_SERVICE + "ModelInfer"


class LibraryClient(LoadClient):
    """The client with a library's byte machine or loop. No TLS, compression or shared memory."""

    def __init__(self, settings: Settings, spec: ClientSpec, library: str):
        super().__init__(settings, spec)
        self._library = library
        name = self._models[0].name
        self._path = f"/v2/models/{name}/infer"
        self._headers = {"User-Agent": "profharness", "Content-Type": "application/octet-stream"}
        loop = self._loop(self._servers[0].address(spec.protocol))
        if loop is not None:
            vars(crew)["Loop"] = loop

    def _loop(self, address: str) -> Any:
        thread, task = call_loops.ThreadLoop, call_loops.AsyncioLoop
        if self._library == "grpcio":
            return partial(thread, call_loops.grpcio(address, METHOD))
        if self._library == "grpcio-asyncio":
            return partial(task, call_loops.grpcio_asyncio(address, METHOD))
        if self._library == "httpx":
            return partial(thread, call_loops.httpx(address, self._path, self._headers))
        if self._library == "http.client":
            return partial(thread, call_loops.http_client(address, self._path, self._headers))
        return None

    def _target(self, server: Server, model: str) -> Target:
        target = super()._target(server, model)
        if self._library == "h2":
            from load_clients.over_h2 import H2  # each only where it is installed

            headers = [
                (":method", "POST"),
                (":scheme", "http"),
                (":path", METHOD),
                (":authority", target.name),
                ("te", "trailers"),
                ("content-type", "application/grpc"),
                ("user-agent", "profharness"),
            ]
            return target._replace(codec=partial(H2, headers))
        if self._library == "h11":
            from load_clients.over_h11 import H11

            headers = [("Host", target.name), *self._headers.items()]
            return target._replace(codec=partial(H11, self._path, headers))
        return target


def load(settings: Settings) -> LoadClient:
    return LibraryClient(settings, read_client_spec(settings.spec_path), os.environ["LOAD_LIBRARY"])


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))

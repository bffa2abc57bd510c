"""Worker of served scans on the client's side: puts a server under the load of each level and
records every request.

It speaks KServe v2 over gRPC and HTTP to any such server, and plain HTTP with a given body to any
other. Started by `profharness run`; by hand, for looking at one level:

    python triton_client.py SERVER-READY.json [--model M] [--concurrency 4 | --rate 100] [--seconds
      5] ...

The clients are processes of their own (crew), each an event loop over plain sockets (loop): a gRPC
library costs two to three times the CPU time per request, which is taken from the server where both
share a node (docs/architecture.md#load-generator).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # processes are forked here: a pool of threads would not follow

import contextlib
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from profharness_workloads.loadgen import http1, http2
from profharness_workloads.loadgen.answers import compare
from profharness_workloads.loadgen.arrivals import Arrivals, arrivals_from, shares
from profharness_workloads.loadgen.client_plan import Plan
from profharness_workloads.loadgen.connection import Target
from profharness_workloads.loadgen.crew import LevelFailed
from profharness_workloads.loadgen.device_memory import memory
from profharness_workloads.loadgen.inputs import Prepared, prepare
from profharness_workloads.loadgen.level import (
    Surroundings,
    busy_processes,
    first_connections,
    run_level,
)
from profharness_workloads.loadgen.messages import (
    GRPC_SERVICE,
    Message,
    Region,
    grpc_message,
    http_message,
    plain_message,
)
from profharness_workloads.loadgen.settings import (
    GRPC,
    ClientSpec,
    Level,
    Model,
    Server,
    judged,
    read_client_spec,
    read_server,
    same_model,
)
from profharness_workloads.loadgen.shared_memory import SharedTensors
from profharness_workloads.loadgen.window import Windows
from profharness_workloads.shared import worker
from profharness_workloads.shared.protocol import BAD_INPUT, Asked, Refusal, Settings

Messages = Callable[[int], Sequence[Message]]

REQUESTS_PER_LEVEL = (
    1 << 28
    # numbers differ between levels: the server may still write down the last ones of the level
    # before
)


class LoadClient(worker.Workload):
    """One server or several, connected to, and the level that runs on them."""

    def __init__(self, settings: Settings, spec: ClientSpec):
        self._settings, self._spec = settings, spec
        self._servers = [read_server(path) for path in spec.ready]
        self._plain = _bodies(spec.body) if spec.body else []
        names = [name for name, _ in spec.models] or [spec.model]
        self._models: List[Model] = (
            [] if self._plain else [same_model(self._servers, name, spec.headers) for name in names]
        )
        self._memory = (
            None if spec.shared_memory == "none" else memory(spec.shared_memory, spec.device_id)
        )
        self._windows = Windows(settings.control_dir, spec.managed)
        self._levels = 0
        self._prepared: Dict[Tuple[str, int, int, str], Prepared] = {}
        self._compared: Dict[Tuple[str, int, int, str], Dict[str, str]] = {}
        self.versions = {"python": sys.version.split()[0]}
        self.devices: List[Dict[str, Any]] = []
        self.device = self._servers[0].device or "unknown"

    def judged(self, asked: Asked) -> Level:
        return judged(asked, self._spec.seed, self._spec.ragged)

    def measure(self, point: Any, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Run one level on all servers and models. Raises LevelFailed when no request is answered
        in the window.
        """
        level: Level = point
        self._levels += 1
        with contextlib.ExitStack() as held:
            models: Sequence[Optional[Model]] = self._models if self._models else [None]
            entered = [held.enter_context(self._messages(model, level)) for model in models]
            plans = self._plans(level, [messages for messages, _ in entered])
            around = Surroundings(self._servers, self._windows, still_wanted)
            # models that are asked at once each get the level's load
            report = run_level(
                level._replace(concurrency=level.concurrency * len(entered)), plans, around
            )
        if self._models:
            report.level.update(
                instances=self._models[0].instances, gathers=self._models[0].gathers
            )
        notes = entered[0][1] if len(entered) == 1 else {}
        if self._spec.models:
            report.level["models"] = [
                label for _, label in self._spec.models for _ in range(len(plans) // len(entered))
            ]
        if not report.answered:
            failure = report.notes.get("said")
            raise LevelFailed(
                "no request was answered in the window%s" % (" (%s)" % failure if failure else "")
            )
        return worker.Measurement(
            [],
            [],
            level.batch_size,
            [],
            [],
            self.device,
            notes={**notes, **report.notes},
            level=report.level,
        )

    # what is sent

    @contextlib.contextmanager
    def _messages(self, model: Optional[Model], level: Level) -> Any:
        """(messages of a slot, notes) of a level; shared memory is held while it runs."""
        if model is None:
            packed = [
                plain_message(body, level.batch_size, self._spec.compression)
                for body in self._plain
            ]
            yield (lambda _slot: packed), {"bodies": str(len(packed))}
            return
        prepared = self._inputs(model, level)
        notes = {**_notes(prepared, level), **self._answers(model, level, prepared)}
        if self._spec.shared_memory == "none":
            made = self._serialised(model, prepared.requests, {})
            yield (lambda _slot: made), notes
            return
        slots = level.concurrency if level.mode == "closed" else 1024
        with SharedTensors(self._servers, model, prepared, slots, self._memory) as shared:
            yield (
                (lambda slot: self._serialised(model, shared.requests, shared.outputs(slot))),
                notes,
            )

    def _inputs(self, model: Model, level: Level) -> Prepared:
        """The level's distinct inputs; only the latest are kept, since levels of one batch size
        follow each other.
        """
        key = (model.name, level.batch_size, level.seed, level.ragged)
        if key not in self._prepared:
            if len(self._prepared) >= len(self._models):
                self._prepared.clear()
            self._prepared[key] = prepare(self._spec, model, level)
        return self._prepared[key]

    def _answers(self, model: Model, level: Level, prepared: Prepared) -> Mapping[str, str]:
        """Whether ragged requests are answered alike alone and beside others, asked once for the
        levels of the same inputs.
        """
        if level.ragged == "none":
            return {}
        key = (model.name, level.batch_size, level.seed, level.ragged)
        if key not in self._compared:
            self._compared[key] = compare(
                self._servers[0], model.name, prepared.requests, self._spec.timeout_s
            )
        return self._compared[key]

    def _serialised(
        self, model: Model, requests: Sequence[Any], outputs: Mapping[str, Region]
    ) -> Sequence[Message]:
        if self._spec.protocol == GRPC:
            return [
                grpc_message(model.name, model.version, tensors, outputs, self._spec.compression)
                for tensors in requests
            ]
        return [http_message(tensors, outputs, self._spec.compression) for tensors in requests]

    # to whom

    def _plans(self, level: Level, messages: Sequence[Messages]) -> Sequence[Plan]:
        """Plans of the client processes of all models; the processes are numbered through."""
        per_model = busy_processes(level, self._spec.clients)
        clients = per_model * len(messages)
        arrivals: Optional[Arrivals] = None
        slots = list(shares(level.concurrency, per_model)) * len(messages)
        if level.mode == "open":
            arrivals = arrivals_from(level.arrivals, level.rate, level.seed)
            slots = [first_connections(arrivals.rate / clients)] * clients
        names = [model.name for model in self._models] or [""]
        targets = [[self._target(server, name) for server in self._servers] for name in names]
        folder = self._settings.point_dir(level.id)
        return [
            Plan(
                client,
                clients,
                slots[client],
                targets[client // per_model],
                messages[client // per_model],
                int(self._spec.timeout_s * 1e9),
                os.path.join(folder, "requests-%d.i64" % client),
                arrivals,
                level.think_ns,
                numbered=not self._plain,
                first=self._levels * REQUESTS_PER_LEVEL,
            )
            for client in range(clients)
        ]

    def _target(self, server: Server, model: str) -> Target:
        spec = self._spec
        compression = "" if spec.compression == "none" else spec.compression
        headers = {**server.token_header(spec.protocol), **spec.headers}
        tls = server.tls_context(spec.protocol)
        address = server.address(spec.protocol)
        family, where = server.resolved(spec.protocol)
        if spec.protocol == GRPC:
            path = GRPC_SERVICE + "ModelInfer"
            block = http2.call_headers(address, path, tls is not None, compression, headers)
            return Target(
                address, family, where, tls, lambda: http2.Http2(block, bool(compression))
            )
        path = spec.path or "/v2/models/%s/infer" % model
        kind = "application/json" if self._plain else "application/octet-stream"
        head = http1.post_head(address, path, compression, {"Content-Type": kind, **headers})
        return Target(address, family, where, tls, lambda: http1.Http1(head))


def _notes(prepared: Prepared, level: Level) -> Dict[str, str]:
    notes = {
        "input_bytes": "%d" % prepared.bytes_per_request,
        "distinct_inputs": str(len(prepared.requests)),
    }
    if prepared.usual:
        notes["usual_particles"] = ", ".join(prepared.usual)
    if level.ragged != "none":
        notes.update(
            ragged=level.ragged,
            padded_share="%.4f" % prepared.padded_share,
            particles_per_item="%.2f" % prepared.particles,
        )
    return notes


def _bodies(path: str) -> List[bytes]:
    """Raises Refusal for a file that cannot be read or is empty."""
    try:
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise Refusal("%s: cannot be read (%s)" % (path, error.strerror), code=BAD_INPUT) from error
    bodies = (
        [line for line in raw.splitlines() if line.strip()] if path.endswith(".jsonl") else [raw]
    )
    if not any(bodies):
        raise Refusal("%s is empty" % path, "it should hold what a request sends", BAD_INPUT)
    return bodies


def load(settings: Settings) -> LoadClient:
    """Raises Refusal for a spec, a server or a model that cannot be used."""
    return LoadClient(settings, read_client_spec(settings.spec_path))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        from profharness_workloads.loadgen import by_hand

        sys.exit(by_hand.main(sys.argv[1:]))
    sys.exit(worker.main(load, os.environ))

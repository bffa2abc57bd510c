"""A model server: real Triton through PyTriton, with models of torch, onnxruntime or others inside
this process.

Requests reach `inference` below, one thread per instance, where batching has been done; the model's
own time is taken there. Levels of a scan are opened and closed over CONTROL_DIR/levels.jsonl,
answered in windows.jsonl: between the two, executions are recorded and the layers' own recorders
run. `{"kind": "stop"}` there, SIGTERM or SIGINT end the server. Driven by PROFHARNESS_* variables
and the spec file alone (see shared/protocol and serving/plan); told in server-ready.json.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import contextlib
import json
import socket
import time
import traceback
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from profharness_workloads.serving import plan as serving_plan
from profharness_workloads.serving import records as serving_records
from profharness_workloads.serving import runner as serving_runner
from profharness_workloads.serving import start as serving_start
from profharness_workloads.serving.repository import InRepository, Store
from profharness_workloads.serving.start import Bound
from profharness_workloads.shared import lifetime, protocol, ranges, worker

READY = "server-ready.json"
LEVELS, WINDOWS = "levels.jsonl", "windows.jsonl"
POLL_S = 0.01
LOOK_S = 1.0


def inference(
    call: serving_runner.Call,
    names: Sequence[str],
    results: Sequence[str],
    instance: int,
    model: int,
    records: Any,
) -> Callable[[List[Any]], List[Any]]:
    """The function that PyTriton calls with the requests of one batch: joined, run, and cut apart
    again.

    The recorded time is that of the model with its copies to and from the device, as in a direct
    scan; joining and cutting belong to the transport.
    """
    import numpy as np

    def infer(requests: List[Any]) -> List[Any]:
        sizes = [len(request.data[names[0]]) for request in requests]
        if len(requests) == 1:
            arrays = [_writable(requests[0].data[name]) for name in names]
        else:
            arrays = [
                np.concatenate([request.data[name] for request in requests]) for name in names
            ]
        handle, start = records.begin()
        try:
            outputs = call(arrays)
        except BaseException:  # whatever the model raises: it does not run any more
            records.failed(handle)
            raise
        row = (start, time.perf_counter_ns(), sum(sizes), len(sizes), instance, model)
        records.end(
            handle, row, [serving_records.sequence(request.parameters) for request in requests]
        )
        cuts = np.cumsum(sizes)[:-1]
        parts = [np.split(output, cuts) for output in outputs]
        return [dict(zip(results, outputs_of_request)) for outputs_of_request in zip(*parts)]

    return infer


def _writable(array: Any) -> Any:
    """The array, or a copy of one in read-only memory, about which frameworks complain."""
    return array if array.flags.writeable else array.copy()


def bind(
    plan: serving_plan.Plan, settings: protocol.Settings, records: Any, store: Optional[Store]
) -> List[Bound]:
    """Load every model; with a store, write it there, so that Triton runs it. Raises Refusal."""
    bound = []
    for index, model in enumerate(plan.models):
        runner = serving_runner.load(model, settings)
        if store is not None:
            written = InRepository(model, runner, store.repository, store.executions)
            bound.append(Bound(model, written, []))
            continue
        signature = runner.signature
        names, results = (
            [spec.name for spec in signature.inputs],
            [spec.name for spec in signature.outputs],
        )
        functions = [
            inference(runner.instance(number), names, results, number, index, records)
            for number in range(model.instances)
        ]
        bound.append(Bound(model, runner, functions))
    return bound


def description(server: serving_start.Server, bound: Sequence[Bound]) -> Dict[str, Any]:
    """The content of the ready file, as one JSON object."""
    door, ports = server.door, server.ports
    return {
        "v": protocol.VERSION,
        "pid": os.getpid(),
        "server_pid": server.pid,
        "host": socket.gethostname(),
        "opened": door.opened,
        "grpc": "%s:%d" % (server.local, ports.grpc),
        "http": "%s:%d" % (server.http_host, ports.http),
        "metrics": "http://%s:%d/metrics" % (server.http_host, ports.metrics),
        "token": server.token,
        "tls": bool(door.tls_cert),
        "ca": door.tls_cert,
        "models": [_model(bound_model) for bound_model in bound],
        "device": ",".join(sorted({bound_model.runner.device for bound_model in bound})),
        "fallback": "; ".join(
            bound_model.runner.fallback for bound_model in bound if bound_model.runner.fallback
        ),
        "versions": versions(bound),
        "repository": server.repository,
    }


def _model(bound_model: Bound) -> Dict[str, Any]:
    def tensors(specs: Sequence[Any]) -> List[Dict[str, Any]]:
        return [
            {
                "name": spec.name,
                "dtype": serving_plan.dtype_name(spec.dtype),
                "shape": list(serving_start.shape(spec)) or [1],
            }
            for spec in specs
        ]

    model, runner = bound_model.model, bound_model.runner
    return {
        "name": model.name,
        "version": "1",
        "backend": runner.backend,
        "device": runner.device,
        "max_batch_size": model.max_batch_size,
        "instances": model.instances,
        "queue_delay_us": model.queue_delay_us,
        "inputs": tensors(runner.signature.inputs),
        "outputs": tensors(runner.signature.outputs),
    }


def versions(bound: Sequence[Bound]) -> Dict[str, str]:
    """Python, NumPy, PyTriton (empty where unknown), and what the runners report."""
    import numpy

    try:
        from importlib.metadata import version  # Python 3.8 on

        pytriton = version("nvidia-pytriton")
    except Exception:  # a broken metadata folder must not stop a server
        pytriton = ""
    by_name = {"python": sys.version.split()[0], "numpy": numpy.__version__, "pytriton": pytriton}
    for bound_model in bound:
        by_name.update(bound_model.runner.versions)
    return by_name


def devices(bound: Sequence[Bound]) -> List[Dict[str, Any]]:
    """The devices that the instances use, by the framework's names."""
    names = sorted({name for bound_model in bound for name in bound_model.runner.device.split(",")})
    return [
        {"index": int(name.partition(":")[2] or 0), "kind": name.partition(":")[0], "name": name}
        for name in names
    ]


def take_executions(bound: Sequence[Bound], records: serving_records.Records) -> None:
    """Have the records keep what ran in Triton's own processes since the last call."""
    for index, bound_model in enumerate(bound):
        runner = bound_model.runner
        for one in runner.executions() if isinstance(runner, InRepository) else ():
            row = (one.start_ns, one.end_ns, one.items, one.requests, one.instance, index)
            records.end(0, row, list(one.sequences))


class Windows:
    """The levels of a scan, one open at a time."""

    def __init__(
        self, settings: protocol.Settings, bound: Sequence[Bound], records: serving_records.Records
    ):
        self._settings, self._bound, self._records = settings, bound, records
        self._runners = [bound_model.runner for bound_model in bound]
        backends = {runner.backend for runner in self._runners}
        framework = "torch" if "torch" in backends else next(iter(sorted(backends)))
        self._marks = ranges.open_marks(settings, framework, all_threads=True)
        self._stack: Optional[contextlib.ExitStack] = None
        self._key = ""
        self._path = os.path.join(settings.control_dir, WINDOWS)

    def open(self, key: str) -> None:
        """Begin a level. If a recorder cannot start, the answer says so and the level goes on
        without it.
        """
        self.close()
        take_executions(self._bound, self._records)
        self._key, self._stack = key, contextlib.ExitStack()
        error = ""
        try:
            for runner in self._runners:
                runner.open_window(key)
                self._stack.callback(runner.close_window, key)
            if self._marks:
                self._stack.enter_context(self._marks.point(key, self._settings))
        except Exception as failure:  # any recorder's own failure
            traceback.print_exc()
            error = protocol.one_sentence(failure)
        self._records.open(key)
        self._answer("opened", key, error)

    def close(self) -> None:
        """End a level: wait for what runs, stop the recorders, write the records."""
        if self._stack is None:
            return
        error, closed_ns = "", time.perf_counter_ns()
        take_executions(self._bound, self._records)
        notes = protocol.joined([runner.level_notes() for runner in self._runners])
        self._records.close()
        try:
            self._stack.close()
        except Exception as failure:  # any recorder's own failure
            traceback.print_exc()
            error = protocol.one_sentence(failure)
        self._stack = None
        self._answer("closed", self._key, error, closed_ns, notes)

    def _answer(
        self,
        kind: str,
        key: str,
        error: str,
        at_ns: Optional[int] = None,
        notes: Optional[Mapping[str, str]] = None,
    ) -> None:
        record: Dict[str, Any] = {
            "v": protocol.VERSION,
            "kind": kind,
            "id": key,
            "monotonic_ns": at_ns or time.perf_counter_ns(),
        }
        if notes:
            record["notes"] = dict(notes)
        if error:
            record["error"] = error
        with open(self._path, "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


class Levels:
    """Follows levels.jsonl: whole lines that were not there before."""

    def __init__(self, control_dir: str):
        self._path, self._at = os.path.join(control_dir, LEVELS), 0

    def news(self) -> List[Mapping[str, Any]]:
        """The new records, in order; lines that are no records are skipped."""
        try:
            if os.stat(self._path).st_size <= self._at:
                return []
        except OSError:
            return []
        with open(self._path, "rb") as file:
            file.seek(self._at)
            data = file.read()
        end = data.rfind(b"\n") + 1
        self._at += end
        records = []
        for line in data[:end].splitlines():
            try:
                records.append(json.loads(line.decode("utf-8")))
            except ValueError:
                print(
                    "profharness server: %s: not a record: %r" % (self._path, line[:80]),
                    file=sys.stderr,
                )
        return [record for record in records if isinstance(record, dict)]


def serve(settings: protocol.Settings, results: protocol.Results, harness: lifetime.Harness) -> int:
    """Load, start, tell, and stay up. Raises Refusal for what cannot be served, Stopped when told
    to end.
    """
    levels = Levels(settings.control_dir)
    levels.news()  # what was said to a server before this one is not for us
    plan = serving_plan.read(os.environ["PROFHARNESS_SPEC"])
    records = serving_records.Records(settings, on=plan.records)
    store = Store.of(plan, settings.run_dir, settings.control_dir) if plan.in_repository else None
    bound = bind(plan, settings, records, store)
    for bound_model in bound:
        if bound_model.runner.fallback:
            print("profharness server: %s" % bound_model.runner.fallback, file=sys.stderr)
    windows = Windows(settings, bound, records)
    server = serving_start.Server(
        plan.door, bound, os.path.join(settings.control_dir, "tritonserver.log"), store
    )
    try:
        content = description(server, bound)
        results.hello(content["versions"], devices(bound))
        write_ready(os.path.join(settings.control_dir, READY), content)
        _stay(server, levels, windows, records, harness, bound)
    finally:
        serving_start.heed_no_signals()
        windows.close()
        server.stop()
        if store is not None:
            store.tidy()
    results.write("bye")
    return 0


def write_ready(path: str, content: Mapping[str, Any]) -> None:
    """Write the ready file as a whole or not at all. It holds the token, so only its owner may read
    it.
    """
    temporary = "%s.%d" % (path, os.getpid())
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
    os.replace(temporary, path)


def _stay(
    server: serving_start.Server,
    levels: Levels,
    windows: Windows,
    records: serving_records.Records,
    harness: lifetime.Harness,
    bound: Sequence[Bound],
) -> None:
    look = time.monotonic() + LOOK_S
    while True:
        for record in levels.news():
            kind, key = record.get("kind"), str(record.get("id") or "")
            if kind == "stop":
                return
            if kind == "open" and key:
                windows.open(key)
            elif kind == "close":
                windows.close()
        if time.monotonic() > look:
            take_executions(bound, records)
            records.flush()
            harness.require()
            if not server.alive():
                raise RuntimeError("tritonserver ended: %s" % serving_start.last_words(server.log))
            look = time.monotonic() + LOOK_S
        time.sleep(POLL_S)


if __name__ == "__main__":
    sys.exit(worker.supervised(serve, os.environ))

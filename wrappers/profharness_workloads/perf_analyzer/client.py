"""Worker of served scans that has perf_analyzer make the load: one level per call, on the same
inputs as our own generator.

What it prints is compared with what was asked, since it ends with status 0 after leaving out
levels; its own `--request-count` is refused, whose throughput is wrong (requests over whole
seconds). The times of all requests are taken from its profile export and put on CLOCK_MONOTONIC, so
that a level's figures are worked out as for any other.
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.loadgen.arrivals import CONSTANT, POISSON, arrivals_from
from profharness_workloads.loadgen.crew import LevelFailed
from profharness_workloads.loadgen.device_memory import memory
from profharness_workloads.loadgen.inputs import prepare
from profharness_workloads.loadgen.level import COLUMNS, DONE, SENT
from profharness_workloads.loadgen.server_side import ServerCpu
from profharness_workloads.loadgen.settings import (
    GRPC,
    ClientSpec,
    Level,
    Server,
    judged,
    private_settings,
    read_client_spec,
    read_server,
    same_model,
)
from profharness_workloads.loadgen.window import Windows
from profharness_workloads.perf_analyzer import binary, files
from profharness_workloads.perf_analyzer.run import Ran, run
from profharness_workloads.shared import leftovers, worker
from profharness_workloads.shared.protocol import Asked, Refusal, Settings

WINDOWS = 3  # a level is stable when so many of its windows agree; they are what it reports
STRETCH = 1.2  # its windows last so many times what was asked
TRIALS, WITHIN_PERCENT = 10, 10
LIMIT_FACTOR, LIMIT_EXTRA_S = 4, 60.0
REFUSED = {
    "--request-count": (
        "its throughput divides the requests by whole seconds, not by the time that they took"
    ),
    "--concurrency-range": "levels are given by --concurrency, one per call",
    "--request-rate-range": "levels are given by --rate, one per call",
    "-t": "levels are given by --concurrency, one per call",
    "-f": "the harness reads its exports",
    "--profile-export-file": "the harness reads its exports",
}
_CSV_PARTS = (
    ("queue_ns", "Server Queue"),
    ("compute_input_ns", "Server Compute Input"),
    ("compute_infer_ns", "Server Compute Infer"),
    ("compute_output_ns", "Server Compute Output"),
)


class Extra(NamedTuple):
    """What only this driver is told: further arguments, and the image that holds perf_analyzer."""

    args: Tuple[str, ...] = ()
    image: str = ""


class PerfAnalyzer(worker.Workload):
    """One server, and a perf_analyzer that is started anew for each level."""

    def __init__(self, settings: Settings, spec: ClientSpec, extra: Extra):
        self._settings, self._spec, self._extra = settings, spec, extra
        self._server = _only(spec)
        self._model = same_model([self._server], spec.model, spec.headers)
        if spec.shared_memory == "cuda" and not extra.image:
            memory("cuda", spec.device_id)  # says what is missing, which perf_analyzer does not
        self._binary = binary.find(os.environ, extra.image)
        self._windows = Windows(settings.control_dir, spec.managed)
        self.versions = {"perf_analyzer": binary.version(self._binary, os.environ)}
        self.devices: List[Dict[str, Any]] = []
        self.device = self._server.device or "unknown"

    def judged(self, asked: Asked) -> Level:
        return judged(asked, self._spec.seed, self._spec.ragged)

    def measure(self, point: Any, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Run perf_analyzer on one level. Raises LevelFailed for a level that it does not know or
        could not measure.
        """
        level: Level = point
        if level.think_ns or level.ragged != "none":
            raise LevelFailed(
                "perf_analyzer knows neither think time nor requests of different sizes"
            )
        with leftovers.temporary_folder("pa") as folder:
            argv, export = self._prepared(level, folder)
            notes: Dict[str, str] = {"command": _shown(argv)}
            if not self._windows.announce("open", "opened", level.id, still_wanted):
                notes["window"] = "the server did not answer the opening of the window"
            cpu = ServerCpu(self._server)
            before, began = cpu.read_ns(), time.monotonic()
            limit = (
                LIMIT_FACTOR * (level.seconds * TRIALS / WINDOWS + level.warmup_s) + LIMIT_EXTRA_S
            )
            ran = run(argv, dict(self._binary.environment(os.environ)), export, limit, still_wanted)
            after, ended = cpu.read_ns(), time.monotonic()
            self._windows.announce("close", "closed", level.id, still_wanted)
            row = files.csv_row(os.path.join(folder, "level.csv"))
        print(ran.text)
        _require_level(level, ran, row)
        cores = (
            None if before is None or after is None else (after - before) / ((ended - began) * 1e9)
        )
        report = self._report(level, ran, row, cores)
        notes["throughput_as_printed"] = row.get("Inferences/Second", "")
        return worker.Measurement(
            [], [], level.batch_size, [], [], self.device, notes=notes, level=report
        )

    def _prepared(self, level: Level, folder: str) -> Tuple[List[str], str]:
        """The command and the pipe that it exports to; its files are in `folder`."""
        spec, server, model = self._spec, self._server, self._model
        ready = prepare(spec, model, level)
        with open(os.path.join(folder, "inputs.json"), "wb") as file:
            file.write(files.input_data(ready.requests, model.max_batch_size > 0))
        export = os.path.join(folder, "export.json")
        os.mkfifo(export)
        window_ms = max(100, int(level.seconds * 1000 / WINDOWS / STRETCH))
        argv = [
            *self._binary.argv,
            "-m",
            model.name,
            "-u",
            server.address(spec.protocol),
            "-i",
            spec.protocol,
            "--async",
        ]
        argv += ["-b", str(level.batch_size), "--input-data", os.path.join(folder, "inputs.json")]
        for described, tensor in zip(model.inputs, ready.requests[0]):
            if None in described.dims:
                dims = tensor.array.shape[1:] if model.max_batch_size else tensor.array.shape
                argv += ["--shape", "%s:%s" % (tensor.name, ",".join(map(str, dims)))]
        argv += ["-p", str(window_ms), "-s", str(WITHIN_PERCENT), "-r", str(TRIALS)]
        argv += [
            "-f",
            os.path.join(folder, "level.csv"),
            "--verbose-csv",
            "--profile-export-file",
            export,
        ]
        argv += _load_arguments(level, folder) + _transport(spec, server) + list(self._extra.args)
        return argv, export

    def _report(
        self, level: Level, ran: Ran, row: Dict[str, str], server_cores: Optional[float]
    ) -> Dict[str, Any]:
        """The level from its own times; its windows begin and end where it says."""
        boundaries = [at - ran.wall_minus_monotonic_ns for at in ran.times.boundaries][
            -WINDOWS - 1 :
        ]
        rows = _rows(ran, level)
        path = os.path.join(self._settings.point_dir(level.id), "requests-0.i64")
        rows.astype("<i8").tofile(path)
        if len(boundaries) < 2 or not len(rows):
            raise LevelFailed("perf_analyzer's export names no requests or no windows")
        opened, closed = boundaries[0], boundaries[-1]
        inside = int(((rows[:, DONE] > opened) & (rows[:, DONE] <= closed)).sum())
        rate = (
            arrivals_from(level.arrivals, level.rate, level.seed).rate
            if level.mode == "open"
            else None
        )
        return {
            "mode": level.mode,
            "concurrency": level.concurrency if level.mode == "closed" else None,
            "rate": rate,
            "window_start_ns": opened,
            "window_end_ns": closed,
            "requests": inside,
            "failed": 0,
            "clients": 1,
            "cpu_ns": int(ran.cpu_ns * inside / len(rows)),
            "late_sends": 0,
            "steady": not files.unsettled(ran.text),
            "warmup_ns": max(0, opened - int(rows[:, SENT].min())),
            "server_stats": self._server_stats(ran, row),
            "server_cpu_ns": None
            if server_cores is None
            else int(server_cores * (closed - opened)),
            "network_bytes": None,
        }

    def _server_stats(self, ran: Ran, row: Dict[str, str]) -> Optional[Dict[str, Any]]:
        """What it took from the server's statistics: means in whole microseconds, times the
        requests of its windows.
        """
        counts = files.counts(ran.text)
        requests = counts.get("successful", 0)
        if not requests or any(name not in row for _, name in _CSV_PARTS):
            return None
        stats: Dict[str, Any] = {
            key: int(float(row[name]) * 1000) * requests for key, name in _CSV_PARTS
        }
        stats.update(
            success=requests,
            count=counts.get("inference", 0),
            exec_count=counts.get("execution", 0),
            batch_sizes={},
        )
        return {self._model.name: stats}


def _rows(ran: Ran, level: Level) -> Any:
    """Rows of the records: a request is intended when it is sent, since perf_analyzer does not keep
    when it was due.
    """
    times = np.array(ran.times.requests, np.int64).reshape(-1, 2) - ran.wall_minus_monotonic_ns
    rows = np.zeros((len(times), COLUMNS), np.int64)
    rows[:, 0] = np.arange(len(times))
    rows[:, 1], rows[:, 2], rows[:, 3], rows[:, 4] = (
        times[:, 0],
        times[:, 0],
        times[:, 1],
        level.batch_size,
    )
    return rows


def _only(spec: ClientSpec) -> Server:
    if len(spec.ready) != 1:
        raise Refusal("perf_analyzer sends to one server, not %d" % len(spec.ready))
    if spec.body:
        raise Refusal("perf_analyzer is driven on KServe models here, not with a body of one's own")
    return read_server(spec.ready[0])


def _load_arguments(level: Level, folder: str) -> List[str]:
    if level.mode == "closed":
        return ["--concurrency-range", str(level.concurrency)]
    if level.arrivals in (CONSTANT, POISSON):
        return [
            "--request-rate-range",
            "%.12g" % level.rate,
            "--request-distribution",
            level.arrivals,
        ]
    offsets = arrivals_from(level.arrivals, level.rate, level.seed).offsets_ns
    path = os.path.join(folder, "intervals.txt")
    gaps = np.maximum(np.diff(np.asarray(offsets)) // 1000, 1)
    with open(path, "w", encoding="ascii") as file:
        file.write("".join("%d\n" % gap for gap in gaps))
    return ["--request-intervals", path]


def _transport(spec: ClientSpec, server: Server) -> List[str]:
    argv: List[str] = []
    if spec.shared_memory != "none":
        argv += ["--shared-memory", spec.shared_memory]
    if spec.compression != "none":
        if spec.protocol != GRPC:
            raise Refusal("perf_analyzer compresses over gRPC only", "take --protocol grpc")
        argv += ["--grpc-compression-algorithm", spec.compression]
    for name, value in {**server.token_header(spec.protocol), **spec.headers}.items():
        argv += ["-H", "%s:%s" % (name, value)]
    if spec.protocol == GRPC and server.tls:
        argv += ["--ssl-grpc-use-ssl", "true"]
        argv += ["--ssl-grpc-root-certifications-file", server.ca] if server.ca else []
    if spec.protocol != GRPC and server.http_tls and server.ca:
        argv += ["--ssl-https-ca-certificates-file", server.ca]
    return argv


def _require_level(level: Level, ran: Ran, row: Dict[str, str]) -> None:
    """Raises LevelFailed unless its CSV holds the level that was asked for."""
    if ran.status:
        complaint = files.complaint(ran.text)
        longer = " (here: --time)" if "--measurement-interval" in complaint else ""
        raise LevelFailed(
            "perf_analyzer ended with status %d: %s%s" % (ran.status, complaint, longer)
        )
    if not row:
        raise LevelFailed("perf_analyzer left the level out: %s" % files.complaint(ran.text))
    got = row.get("Concurrency") if level.mode == "closed" else row.get("Request Rate")
    asked = float(level.concurrency if level.mode == "closed" else level.rate)
    if got is not None and asked and abs(float(got) / asked - 1) > 1e-3:
        raise LevelFailed("perf_analyzer measured %s where %g was asked" % (got, asked))


def _shown(argv: Sequence[str]) -> str:
    """The command with `...` for what only PRIVATE holds: a note stands in files of the run."""
    private = private_settings()
    hidden = (str(private.get("token") or ""), *private.get("perf_analyzer_args", ()))
    text = " ".join(argv)
    for secret in filter(None, hidden):
        text = text.replace(secret, "...")
    return text


def load(settings: Settings) -> PerfAnalyzer:
    """Raises Refusal for what perf_analyzer cannot do, and when it is not there."""
    spec = read_client_spec(settings.spec_path)
    with open(settings.spec_path, encoding="utf-8") as file:
        raw = json.load(file)
    raw = {**raw, **private_settings()}
    args = tuple(str(argument) for argument in raw.get("perf_analyzer_args") or ())
    for argument in args:
        name = argument.partition("=")[0]
        if name in REFUSED:
            raise Refusal("%s is not passed on: %s" % (name, REFUSED[name]))
    return PerfAnalyzer(settings, spec, Extra(args, str(raw.get("perf_analyzer_image") or "")))


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))

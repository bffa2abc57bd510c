"""The clients that are compared: each puts a level on the server and says what it saw."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from load_clients.figures import OURS, PERF_ANALYZER, Seen, slope_us
from load_clients.serving import SEED, WORKLOADS, environ, start
from profharness.readers.logs.perf_analyzer import read_levels
from profharness.rundir.requests_raw import read_level, to_requests
from profharness.stats.load import level_figures
from profharness.workers.protocol import Line
from profharness_workloads.loadgen import inputs as load_inputs
from profharness_workloads.loadgen import settings as load_settings
from profharness_workloads.loadgen.crew import process_cpu_ns
from profharness_workloads.perf_analyzer import binary as perf_analyzer_binary
from profharness_workloads.perf_analyzer import files as perf_analyzer_files

ENDS_WITHIN_S = 60.0
OUR_WORKER = WORKLOADS / "loadgen" / "triton_client.py"
LIBRARY_WORKER = Path(__file__).with_name("library_worker.py")
# perf_analyzer gives up a level that is not stable within its windows, as on a machine that others
# use too
TRIES = 4


@dataclass(frozen=True)
class Library:
    """A library that could take the place of our protocol code, and the packages that it needs."""

    name: str
    protocol: str
    packages: tuple[str, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Packages that are not installed here."""
        return tuple(one for one in self.packages if importlib.util.find_spec(one) is None)


LIBRARIES = (
    Library("grpcio", "grpc", ("grpc",)),
    Library("grpcio-asyncio", "grpc", ("grpc",)),
    Library("h2", "grpc", ("h2", "hpack")),
    Library("httpx", "http", ("httpx",)),
    Library("http.client", "http", ()),
    Library("h11", "http", ("h11",)),
)


@dataclass(frozen=True)
class Load:
    """What a level puts on the server; the lead is the time before CPU time counts."""

    protocol: str
    concurrency: int
    seconds: float
    lead_s: float


class Client(Protocol):
    """One of the clients, over the rounds."""

    def level(self, load: Load) -> Seen | None:
        """Put this load on the server; None where it gave no level."""

    def close(self) -> None:
        """End what runs of it."""


@dataclass(frozen=True)
class Setting:
    """Where clients run: a folder for all of them, the server's description, their cores."""

    folder: Path
    ready: Path
    cores: set[int]
    processes: int


class Worker:
    """The client worker, kept alive over the rounds as in a scan: ours, or with a library."""

    def __init__(self, setting: Setting, name: str, protocol: str):
        self._folder = setting.folder / f"{name}-{protocol}"
        self._control = self._folder / "client"
        self._control.mkdir(parents=True)
        spec = self._control / "client.json"
        spec.write_text(
            json.dumps(
                {
                    "ready": str(setting.ready),
                    "model": "model",
                    "backend": name,
                    "protocol": protocol,
                    "seed": SEED,
                    "inputs": "hep",
                    "clients": setting.processes,
                }
            )
        )
        self._name, self._count = name, 0
        self._log = (self._folder / "client.log").open("wb")
        self._process = start(
            [sys.executable, str(OUR_WORKER if name == OURS else LIBRARY_WORKER)],
            {**environ(self._folder, spec), "LOAD_LIBRARY": name},
            self._log,
            setting.cores,
        )

    def level(self, load: Load) -> Seen | None:
        key = f"level-{self._count}"
        self._count += 1
        params = {
            "backend": self._name,
            "batch_size": 1,
            "mode": "closed",
            "concurrency": load.concurrency,
            "seconds": load.seconds,
            "warmup_s": load.lead_s,
        }
        with (self._control / "points.jsonl").open("a") as file:
            file.write(json.dumps({"v": 1, "kind": "point", "id": key, "params": params}) + "\n")
        deadline = time.monotonic() + ENDS_WITHIN_S + 4 * load.seconds
        while (line := self._result(key)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                log = (self._folder / "client.log").read_text()
                sys.exit(f"the client {self._name} gave no result:\n{log[-2000:]}")
            time.sleep(0.05)
        if line.level is None or line.level.cpu_ns is None:
            sys.exit(f"the level of the client {self._name} failed: {line.error}")
        rows = read_level(self._folder / "points" / "bare" / key)
        figures = level_figures(to_requests(rows), line.level)
        return Seen(
            figures.throughput.value or 0.0,
            line.level.cpu_ns / 1e3 / max(1, figures.requests),
            figures.little.holds,
        )

    def _result(self, key: str) -> Line | None:
        lines = [
            msgspec.json.decode(text, type=Line)
            for path in self._control.glob("results-*.jsonl")
            for text in path.read_bytes().splitlines(keepends=True)
            if text.endswith(b"\n")
        ]
        return next((line for line in lines if line.kind == "result" and line.id == key), None)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()


class PerfAnalyzer:
    """perf_analyzer on the same inputs, without the exports that cost it CPU time."""

    def __init__(self, setting: Setting):
        self._folder, self._cores = setting.folder / PERF_ANALYZER, setting.cores
        self._folder.mkdir(parents=True)
        self._server = load_settings.read_server(str(setting.ready))
        self._model = self._server.model("model")
        self._binary = perf_analyzer_binary.find(os.environ)
        spec = load_settings.ClientSpec(ready=(str(setting.ready),), seed=SEED, inputs="hep")
        asked = load_settings.judged(load_settings.Asked("level", {"batch_size": 1}), SEED)
        self._inputs = load_inputs.prepare(spec, self._model, asked)
        (self._folder / "inputs.json").write_bytes(
            perf_analyzer_files.input_data(self._inputs.requests, batched=True)
        )

    def level(self, load: Load) -> Seen | None:
        said = ""
        for _ in range(TRIES):
            seen, said = self._once(load)
            if seen is not None:
                return seen
            print("perf_analyzer found no stable level: once more", flush=True)
        print(f"perf_analyzer gave no level, so this round does not count:\n{said[-1000:]}")
        return None

    def close(self) -> None:
        """Nothing runs between levels."""

    def _once(self, load: Load) -> tuple[Seen | None, str]:
        report = self._folder / "report.csv"
        report.unlink(missing_ok=True)
        argv = [*self._binary.argv, *self._words(load, report)]
        process = start(argv, self._binary.environment(os.environ), subprocess.PIPE, self._cores)
        samples = []
        while process.poll() is None:
            samples.append((time.monotonic(), process_cpu_ns(process.pid), self._requests()))
            time.sleep(0.1)
        said = process.stdout.read().decode(errors="replace") if process.stdout else ""
        rows = read_levels(report) if report.exists() else ()
        if process.returncode or not rows:
            return None, said
        return Seen(rows[0].throughput, slope_us(samples, load.lead_s), None), said

    def _words(self, load: Load, report: Path) -> list[str]:
        options: Mapping[str, object] = {
            "-m": "model",
            "-u": self._server.address(load.protocol),
            "-i": load.protocol,
            "-b": 1,
            "--input-data": self._folder / "inputs.json",
            "--concurrency-range": load.concurrency,
            "-p": max(200, int(load.seconds * 1000 / 3)),
            "-s": 30,
            "-r": 10,
            "-f": report,
        }
        words = ["--async", *(str(word) for pair in options.items() for word in pair)]
        for spec, tensor in zip(self._model.inputs, self._inputs.requests[0], strict=True):
            if None in spec.dims:
                words += ["--shape", f"{tensor.name}:{','.join(map(str, tensor.array.shape[1:]))}"]
        return words

    def _requests(self) -> int:
        with urllib.request.urlopen(
            f"http://{self._server.http}/v2/models/model/stats", timeout=10
        ) as answer:
            return int(
                json.loads(answer.read())["model_stats"][0]["inference_stats"]["success"]["count"]
            )

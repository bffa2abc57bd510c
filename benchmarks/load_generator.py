"""Our load generator and perf_analyzer on the same server in one run: is it as fast, and what does
it cost?

    python benchmarks/load_generator.py [--models sleep:10ms,particlenet] [--concurrency 1,4]
      [--rounds 12] [--seconds 1.5] [--max-batch-size 1] [--shared-cores]

A real PyTriton server is started once per model; both generators put the same levels on it in turn,
in random order within each round, with the same inputs. Throughput is what each reports itself. CPU
time is taken from the process clocks of the generators while load runs, requests from the server's
own statistics. Printed are, per model and concurrency, the medians over rounds of the ratios within
a round (ours / perf_analyzer's), with Student's 95 % interval of their mean, since a machine that
others use too changes between rounds. The server has one half of the cores to itself and the
generator at work the other: where they share them, a generator that takes less CPU leaves more to a
server that needs it, and is ahead by that alone (`--shared-cores` shows it). By default the server
puts no requests together: with a dynamic batcher the same load settles in one of several patterns
(1, 7, 1, 7 or 4, 4, 4), which differ more than generators do. The figures go to benchmarks/results.
Goals: the median throughput ratio between 0.95 and 1.05, the median CPU ratio at most 1.5, Little's
law at each of our levels. Exit status 1 when one is missed, 3 when a throughput ratio lies outside
and its interval does not, so that the machine was too noisy to tell.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
from scipy import stats

from profharness.readers.logs.perf_analyzer import read_levels
from profharness.rundir.requests_raw import read_level, to_requests
from profharness.stats.load import level_figures
from profharness.workers.protocol import Line

ROOT = Path(__file__).resolve().parents[1]
WORKLOADS = ROOT / "wrappers" / "profharness_workloads"
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(WORKLOADS.parent))

from profharness_workloads.loadgen import inputs as load_inputs  # noqa: E402  workers' own modules
from profharness_workloads.loadgen import settings as load_settings  # noqa: E402  as above
from profharness_workloads.loadgen.crew import process_cpu_ns  # noqa: E402  as above
from profharness_workloads.perf_analyzer import binary as perf_analyzer_binary  # noqa: E402  same
from profharness_workloads.perf_analyzer import files as perf_analyzer_files  # noqa: E402  as above

SAME, CHEAP = 0.05, 1.5
LEAD_S = 1.0  # perf_analyzer starts and warms up for so long before its CPU time counts
STARTS_WITHIN_S, ENDS_WITHIN_S = 60.0, 60.0
UNCLEAR = 3
# perf_analyzer gives up a level that is not stable within its windows, as on a machine that others
# use too
TRIES = 4
SEED = 1


@dataclass(frozen=True)
class Seen:
    """One level: items/s as reported, CPU time per request in µs, whether N = X R held (None: not
    checked).
    """

    throughput: float
    cpu_us: float
    little: bool | None


def environ(folder: Path, spec: Path) -> dict[str, str]:
    control = spec.parent
    return {
        **os.environ,
        "PROFHARNESS_RUN_DIR": str(folder),
        "PROFHARNESS_CONTROL_DIR": str(control),
        "PROFHARNESS_PASS": "bare",
        "OMP_NUM_THREADS": "1",
        "PROFHARNESS_SPEC": str(spec),
        "PROFHARNESS_PARENT_PID": str(os.getpid()),
        "PROFHARNESS_WORKER": "1",
        "PROFHARNESS_LAYERS": "",
    }


def halves(shared: bool) -> tuple[set[int], set[int]]:
    """The cores of the server and those of the generators."""
    cores = sorted(os.sched_getaffinity(0))
    if shared or len(cores) < 2:
        return set(cores), set(cores)
    return set(cores[: len(cores) // 2]), set(cores[len(cores) // 2 :])


def start(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes] | int, cores: set[int]
) -> subprocess.Popen[bytes]:
    """A program that is on these cores from its first instruction on."""
    return subprocess.Popen(
        ["taskset", "-c", ",".join(map(str, sorted(cores))), *argv],
        env=dict(env),
        stdout=output,
        stderr=subprocess.STDOUT,
    )


@contextmanager
def server(folder: Path, model: str, max_batch_size: int, cores: set[int]) -> Iterator[Path]:
    """A PyTriton server of one model; its description."""
    control = folder / "server"
    control.mkdir(parents=True)
    spec = control / "server.json"
    spec.write_text(
        json.dumps(
            {
                "backend": "torch",
                "model": model,
                "name": "model",
                "device": "cpu",
                "instances": 1,
                "max_batch_size": max_batch_size,
                "queue_delay_us": 0,
                "threads": 1,
                "seed": SEED,
                "records": False,
            }
        )
    )
    with (folder / "server.log").open("wb") as log:
        process = start(
            [sys.executable, str(WORKLOADS / "serving" / "triton_server.py")],
            environ(folder, spec),
            log,
            cores,
        )
    ready = control / "server-ready.json"
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(
                    f"the server did not start:\n{(folder / 'server.log').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        yield ready
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


class Ours:
    """The client worker, kept alive over the rounds as in a scan."""

    def __init__(self, folder: Path, ready: Path, clients: int, cores: set[int]) -> None:
        self._folder, self._control = folder, folder / "client"
        self._control.mkdir()
        spec = self._control / "client.json"
        spec.write_text(
            json.dumps(
                {
                    "ready": str(ready),
                    "model": "model",
                    "backend": "ours",
                    "seed": SEED,
                    "inputs": "hep",
                    "clients": clients,
                }
            )
        )
        self._count = 0
        self._log = (folder / "client.log").open("wb")
        self._process = start(
            [sys.executable, str(WORKLOADS / "loadgen" / "triton_client.py")],
            environ(folder, spec),
            self._log,
            cores,
        )

    def level(self, concurrency: int, seconds: float) -> Seen:
        key = f"level-{self._count}"
        self._count += 1
        params = {
            "backend": "ours",
            "batch_size": 1,
            "mode": "closed",
            "concurrency": concurrency,
            "seconds": seconds,
            "warmup_s": LEAD_S,
        }
        with (self._control / "points.jsonl").open("a") as file:
            file.write(json.dumps({"v": 1, "kind": "point", "id": key, "params": params}) + "\n")
        deadline = time.monotonic() + ENDS_WITHIN_S + 4 * seconds
        while (line := self._result(key)) is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                sys.exit(
                    "the client gave no result:\n"
                    f"{(self._folder / 'client.log').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        if line.level is None or line.level.cpu_ns is None:
            sys.exit(f"the level failed: {line.error}")
        figures = level_figures(
            to_requests(read_level(self._folder / "points" / "bare" / key)), line.level
        )
        return Seen(
            figures.throughput.value or 0.0,
            line.level.cpu_ns / 1e3 / max(1, figures.requests),
            figures.little.holds,
        )

    def _result(self, key: str) -> Line | None:
        lines = [
            msgspec.json.decode(text, type=Line)
            for path in self._control.glob("results-*.jsonl")
            for text in path.read_bytes().splitlines()
        ]
        return next((line for line in lines if line.kind == "result" and line.id == key), None)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)
        self._log.close()


class Theirs:
    """perf_analyzer on the same inputs, without the exports that cost it CPU time."""

    def __init__(self, folder: Path, ready: Path, cores: set[int]) -> None:
        self._folder, self._cores = folder, cores
        self._server = load_settings.read_server(str(ready))
        self._model = self._server.model("model")
        self._binary = perf_analyzer_binary.find(os.environ)
        spec = load_settings.ClientSpec(ready=(str(ready),), seed=SEED, inputs="hep")
        asked = load_settings.judged(load_settings.Asked("level", {"batch_size": 1}), SEED)
        self._inputs = load_inputs.prepare(spec, self._model, asked)
        (folder / "inputs.json").write_bytes(
            perf_analyzer_files.input_data(self._inputs.requests, batched=True)
        )

    def level(self, concurrency: int, seconds: float) -> Seen:
        said = ""
        for _ in range(TRIES):
            seen, said = self._once(concurrency, seconds)
            if seen is not None:
                return seen
            print("perf_analyzer found no stable level: once more", flush=True)
        sys.exit(f"perf_analyzer gave no level:\n{said[-2000:]}")

    def _once(self, concurrency: int, seconds: float) -> tuple[Seen | None, str]:
        report = self._folder / "report.csv"
        report.unlink(missing_ok=True)
        argv = [
            *self._binary.argv,
            "-m",
            "model",
            "-u",
            self._server.grpc,
            "-i",
            "grpc",
            "--async",
            "-b",
            "1",
            "--input-data",
            str(self._folder / "inputs.json"),
            "--concurrency-range",
            str(concurrency),
            "-p",
            str(max(200, int(seconds * 1000 / 3))),
            "-s",
            "30",
            "-r",
            "10",
            "-f",
            str(report),
        ]
        for spec, tensor in zip(self._model.inputs, self._inputs.requests[0], strict=True):
            if None in spec.dims:
                argv += ["--shape", f"{tensor.name}:{','.join(map(str, tensor.array.shape[1:]))}"]
        process = start(argv, self._binary.environment(os.environ), subprocess.PIPE, self._cores)
        samples = []
        while process.poll() is None:
            samples.append((time.monotonic(), process_cpu_ns(process.pid), self._requests()))
            time.sleep(0.1)
        said = process.stdout.read().decode(errors="replace") if process.stdout else ""
        rows = read_levels(report) if report.exists() else ()
        if process.returncode or not rows:
            return None, said
        return Seen(rows[0].throughput, _slope_us(samples), None), said

    def _requests(self) -> int:
        with urllib.request.urlopen(
            f"http://{self._server.http}/v2/models/model/stats", timeout=10
        ) as answer:
            return int(
                json.loads(answer.read())["model_stats"][0]["inference_stats"]["success"]["count"]
            )


def _slope_us(samples: list[tuple[float, int, int]]) -> float:
    """CPU time per request between the end of the lead and the last time at which requests still
    grew.
    """
    alive = [one for one in samples if one[1] > 0]
    first = next((one for one in alive if one[0] - alive[0][0] >= LEAD_S), alive[0])
    top = max(one[2] for one in alive)
    last = next(one for one in alive if one[2] == top)
    return (last[1] - first[1]) / 1e3 / max(1, last[2] - first[2])


@dataclass(frozen=True)
class Ratio:
    """Median over rounds of ours / perf_analyzer's, and the mean's 95 % interval."""

    median: float
    low: float
    high: float


def ratio(ours: list[float], theirs: list[float]) -> Ratio:
    logs = np.log(np.array(ours) / np.array(theirs))
    half = (
        float(stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs)))
        if len(logs) > 1
        else float("inf")
    )
    return Ratio(
        float(np.exp(np.median(logs))),
        float(np.exp(logs.mean() - half)),
        float(np.exp(logs.mean() + half)),
    )


@dataclass(frozen=True)
class Compared:
    """One model at one concurrency."""

    model: str
    concurrency: int
    ours_items_per_s: float
    theirs_items_per_s: float
    ours_cpu_us: float
    theirs_cpu_us: float
    throughput: Ratio
    cpu: Ratio
    little: bool

    @property
    def verdict(self) -> str:
        """met, missed, or unclear where the interval of the throughput ratio reaches into the goal
        and its median does not.
        """
        if (
            self.cpu.median > CHEAP
            or not self.little
            or self.throughput.low > 1 + SAME
            or self.throughput.high < 1 - SAME
        ):
            return "missed"
        return "met" if abs(self.throughput.median - 1) <= SAME else "unclear"


def compare(model: str, asked: argparse.Namespace) -> list[Compared]:
    """All levels of one model."""
    order = random.Random(SEED)
    with tempfile.TemporaryDirectory(prefix="profharness-load-") as temporary:
        folder = Path(temporary)
        its_cores, our_cores = halves(asked.shared_cores)
        with server(folder, model, asked.max_batch_size, its_cores) as ready:
            ours, theirs = (
                Ours(folder, ready, asked.clients, our_cores),
                Theirs(folder, ready, our_cores),
            )
            try:
                return [
                    _level(model, concurrency, ours, theirs, asked, order)
                    for concurrency in asked.concurrency
                ]
            finally:
                ours.close()


def _level(
    model: str,
    concurrency: int,
    ours: Ours,
    theirs: Theirs,
    asked: argparse.Namespace,
    order: random.Random,
) -> Compared:
    seen: dict[str, list[Seen]] = {"ours": [], "theirs": []}
    for _ in range(asked.rounds):
        for name in order.sample(sorted(seen), 2):
            seen[name].append(
                (ours if name == "ours" else theirs).level(concurrency, asked.seconds)
            )
    rates = {name: [one.throughput for one in levels] for name, levels in seen.items()}
    cpu = {name: [one.cpu_us for one in levels] for name, levels in seen.items()}
    found = Compared(
        model,
        concurrency,
        float(np.median(rates["ours"])),
        float(np.median(rates["theirs"])),
        float(np.median(cpu["ours"])),
        float(np.median(cpu["theirs"])),
        ratio(rates["ours"], rates["theirs"]),
        ratio(cpu["ours"], cpu["theirs"]),
        all(one.little for one in seen["ours"]),
    )
    print(
        f"{model:>14} {concurrency:>3} clients: throughput {found.ours_items_per_s:8.1f} / "
        f"{found.theirs_items_per_s:8.1f} items/s = {_text(found.throughput)}; "
        f"CPU {found.ours_cpu_us:6.1f} / {found.theirs_cpu_us:6.1f} us per request = "
        f"{_text(found.cpu)}; Little's law {'holds' if found.little else 'BROKEN'}"
        f"   goal {found.verdict}",
        flush=True,
    )
    return found


def _text(one: Ratio) -> str:
    return f"{one.median:.3f} [{one.low:.3f}, {one.high:.3f}]"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models", default="sleep:10ms,particlenet", type=lambda text: text.split(",")
    )
    parser.add_argument(
        "--concurrency", default="1,4", type=lambda text: [int(part) for part in text.split(",")]
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument("--max-batch-size", type=int, default=1)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument(
        "--shared-cores", action="store_true", help="server and generators on all cores"
    )
    asked = parser.parse_args()
    before = os.getloadavg()
    found = [level for model in asked.models for level in compare(model, asked)]
    now = datetime.now(UTC)
    RESULTS.mkdir(exist_ok=True)
    path = (
        RESULTS
        / f"load-generator-{now:%Y-%m-%d}{'-shared-cores' if asked.shared_cores else ''}.json"
    )
    path.write_text(
        json.dumps(
            {
                "date": f"{now:%Y-%m-%d}",
                "machine": {
                    "cores": os.cpu_count(),
                    "kernel": platform.release(),
                    "python": platform.python_version(),
                    "load_average": before,
                },
                "asked": vars(asked),
                "levels": [{**asdict(level), "goal": level.verdict} for level in found],
            },
            indent=1,
        )
        + "\n"
    )
    print(path.relative_to(ROOT))
    verdicts = {level.verdict for level in found}
    return 1 if "missed" in verdicts else UNCLEAR if "unclear" in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())

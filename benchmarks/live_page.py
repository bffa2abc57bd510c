"""What `run --live-page` costs the points: the same small scan in turn with and without it, while a
client asks the page for its state as an open page does.

    python benchmarks/live_page.py [--rounds N] [--steps N] [--step-ms T] [--every S] [--keep]

The workload is a busy loop of one core, whose steps are marked. Each round has one run with the
page and one without, in another order than the round before, and its figure is the ratio of
throughput, with over without, as the mean of the points' logarithms. Printed are the mean ratio
over the rounds with its 95 % interval (Student), and of the server: processor seconds at its start,
which is over before anything is measured, and per look of a page. Exit code 1 where the interval of
the ratio does not hold 1. `--keep` writes all figures to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import description  # noqa: E402 - it lies beside this file

from profharness.stats.bootstrap import student95  # noqa: E402 - the checkout comes first
from tests.processes import below  # noqa: E402 - the checkout comes first

BUSY = """
import sys
import profharness_mark
work, steps, count = map(int, sys.argv[1:])
for _ in range(steps):
    value = 0
    for number in range(count * work):
        value += number * number % 7
    profharness_mark.step(items=work)
"""
ADDRESS = re.compile(r"live page (http://\S+/)")


@dataclass(frozen=True)
class Served:
    """What the server of one run used: processor seconds until it listened and until its last
    answer, and how often it was asked.
    """

    start_s: float
    end_s: float
    asked: int

    @property
    def per_look_ms(self) -> float:
        return (self.end_s - self.start_s) / max(self.asked, 1) * 1e3


@dataclass(frozen=True)
class Round:
    """The ratio of one pair of runs, and the server's use."""

    ratio: float
    with_first: bool
    seconds: float
    served: Served


class Client(threading.Thread):
    """Asks as an open page does, and watches the server's processor time meanwhile."""

    def __init__(self, run: subprocess.Popen[str], errors: Path, every_s: float) -> None:
        super().__init__(daemon=True)
        self._run, self._errors, self._every_s = run, errors, every_s
        self.served = Served(0.0, 0.0, 0)

    def run(self) -> None:
        while not (found := ADDRESS.search(self._errors.read_text())):
            if self._run.poll() is not None:
                return
            time.sleep(0.01)
        server = next(one.pid for one in below(self._run.pid) if "cli.livepage" in one.command)
        start = _cpu_s(server)
        known: dict[str, str] = {}
        asked = 0
        while True:
            marks = ".".join(known.values())
            try:
                with urllib.request.urlopen(f"{found[1]}state?c=ab&k={marks}") as answer:
                    told = json.loads(answer.read())
            except (urllib.error.URLError, OSError):
                return
            asked += 1
            known |= {name: part["mark"] for name, part in told["parts"].items()}
            self.served = Served(start, _cpu_s(server) or self.served.end_s, asked)
            if told["ended"]:
                return
            time.sleep(self._every_s)


def _cpu_s(pid: int) -> float:
    """Processor seconds of a process; 0 where it has ended."""
    try:
        return time.clock_gettime_ns((~pid << 3) | 2) / 1e9
    except OSError:
        return 0.0


def measured(folder: Path, words: list[str], every_s: float | None) -> tuple[list[float], Served]:
    """The throughput of each point; `every_s` is None for a run without the page."""
    page = [] if every_s is None else ["--live-page"]
    errors = folder / "errors"
    argv = [sys.executable, "-m", "profharness", "run", "--json", "-o", str(folder / "run")]
    with errors.open("w") as err:
        process = subprocess.Popen(
            [*argv, *page, *words], cwd=ROOT, stdout=subprocess.PIPE, stderr=err, text=True
        )
    client = None if every_s is None else Client(process, errors, every_s)
    if client is not None:
        client.start()
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"the run failed: {errors.read_text()}")
    served = Served(0.0, 0.0, 0)
    if client is not None:
        client.join()
        served = client.served
    return [point["throughput"] for point in json.loads(out)["points"]], served


def one_round(options: argparse.Namespace, count: int, *, with_first: bool) -> Round:
    """Both runs of a round."""
    rates: dict[bool, list[float]] = {}
    served = Served(0.0, 0.0, 0)
    began = time.monotonic()
    for has_page in (True, False) if with_first else (False, True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            script = folder / "busy.py"
            script.write_text(BUSY)
            words = ["--scan", "work=1,2", "--repeats", "2", "--", sys.executable, str(script)]
            words += ["{work}", str(options.steps), str(count)]
            rates[has_page], used = measured(folder, words, options.every if has_page else None)
            served = used if has_page else served
    logs = [math.log(a / b) for a, b in zip(rates[True], rates[False], strict=True)]
    seconds = time.monotonic() - began
    return Round(math.exp(sum(logs) / len(logs)), with_first, seconds, served)


def calibrated(step_ms: float) -> int:
    """Turns of the busy loop that take about so long here; the same for all runs."""
    count, begin = 200_000, time.perf_counter()
    value = 0
    for number in range(count):
        value += number * number % 7
    return max(int(count * step_ms / 1e3 / (time.perf_counter() - begin)), 1)


def main() -> int:
    """Print the figures; 1 where the page costs more than the noise."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--step-ms", type=float, default=40.0)
    parser.add_argument("--every", type=float, default=1.0, help="seconds between two requests")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    count = calibrated(options.step_ms)
    rounds = [one_round(options, count, with_first=bool(at % 2)) for at in range(options.rounds)]
    logs = np.log([one.ratio for one in rounds])
    mean = float(logs.mean())
    half = float(logs.std(ddof=1) / math.sqrt(len(logs)) * student95(len(logs) - 1))
    low, high = math.exp(mean - half), math.exp(mean + half)
    start = float(np.mean([one.served.start_s for one in rounds]))
    look = float(np.mean([one.served.per_look_ms for one in rounds]))
    asked = sum(one.served.asked for one in rounds)
    print(f"throughput with / without the page: {math.exp(mean):.4f} ({low:.4f} to {high:.4f})")
    print(f"{len(rounds)} rounds; ratios {', '.join(f'{one.ratio:.4f}' for one in rounds)}")
    print(f"server: {start:.2f} CPU s to start, {look:.1f} CPU ms per look ({asked} looks)")
    if options.keep:
        kept: dict[str, object] = {
            "machine": description.machine(()),
            "options": {name: value for name, value in vars(options).items() if name != "keep"},
            "ratio": {"value": math.exp(mean), "low": low, "high": high},
            "server": {"start_cpu_s": start, "cpu_ms_per_look": look, "looks": asked},
            "rounds": [asdict(one) for one in rounds],
        }
        print(description.keep("live-page", kept))
    return 0 if low <= 1.0 <= high else 1


if __name__ == "__main__":
    sys.exit(main())

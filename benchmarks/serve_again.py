r"""Whether the server that a scan of settings recommends gives the same rate again: `python
benchmarks/serve_again.py RUN [--rounds N] [--time S] [--keep]`.

RUN is a search or grid over settings of a server, such as

    profharness run particlenet --via triton --threads 1 --scan backend=torch,onnxruntime \\
      --scan instances=1,2 --scan batch=1,4 --scan concurrency=1,4,16 --search 12 -o RUN

Each round measures one level of the recommended setting in three ways, in another order than the
round before: by a scan of that setting alone (`scan`), on the server that the printed line starts
(`line`), and on the server that Triton starts from the repository that `serve --repository` writes
(`repository`). Printed are the means with their 95 % intervals (Student), and the ratios to `scan`
as means of the rounds' logarithms. Exit code 1 where a server is proven slower than the scan.
`--keep` keeps the figures in benchmarks/results/serve-again-DATE.json.
"""

from __future__ import annotations

import argparse
import math
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import description
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profharness.analysis.axes.records import AxesScan, Parameters
from profharness.rundir.paths import RunDir
from profharness.stats.bootstrap import student95
from profharness.understand import report_run

WAYS = ("scan", "line", "repository")
PROGRAM = (sys.executable, "-m", "profharness")


def recommended(root: Path) -> tuple[list[str], Parameters]:
    """The words behind `serve` of the line that serves it, and the setting."""
    scan = report_run.summarise(report_run.load([root])).axes
    if scan is None or not scan.serve or scan.recommended is None:
        raise SystemExit(f"{root} recommends no server: it is no scan of a server's settings")
    return shlex.split(scan.serve)[2:], _setting(scan)


def _setting(scan: AxesScan) -> Parameters:
    return next(one.parameters for one in scan.points if one.point == scan.recommended)


def free_ports() -> tuple[int, int]:
    """Two ports that nobody listens on."""
    with ExitStack() as held:
        found = [held.enter_context(socket.socket()) for _ in range(2)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return found[0].getsockname()[1], found[1].getsockname()[1]


def measured(way: str, words: Sequence[str], setting: Parameters, seconds: float) -> float:
    """Items per second of one level."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        argv = [*PROGRAM, "run", "-o", str(folder / "run"), "--quiet", "--telemetry", "cpu"]
        argv += ["--time", str(seconds), "--warmup-time", "2"]
        argv += ["--concurrency", str(setting.get("concurrency", 1))]
        if "batch" in setting:
            argv += ["--batch-sizes", str(setting["batch"])]
        if way == "scan":
            argv += ["--model", *words, "--via", "triton"]
        else:
            grpc, http = free_ports()
            more = ("--repository", str(folder / "models")) if way == "repository" else ()
            ports = ("--grpc-port", str(grpc), "--http-port", str(http))
            served = shlex.join([*PROGRAM, "serve", *words, *more, *ports])
            argv += ["--server-command", served, "--model", words[0].partition(":")[0]]
            argv += ["--ready", f"http://127.0.0.1:{http}/v2/health/ready"]
        done = subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False)
        if done.returncode:
            raise SystemExit(f"{shlex.join(argv)}\n{done.stdout}{done.stderr}")
        points = RunDir.open(folder / "run").read_manifest().points
        return max(one.result.throughput for one in points if one.result is not None)


def mean_of(values: Sequence[float]) -> tuple[float, float]:
    """The mean and half of its 95 % interval."""
    array = np.array(values)
    sem = float(array.std(ddof=1)) / math.sqrt(len(array))
    return float(array.mean()), sem * student95(len(array) - 1)


def main() -> int:
    """Print the figures; 1 where a server is proven slower than the scan."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--time", type=float, default=5.0, help="seconds of a level")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    if options.rounds < 2:
        parser.error("--rounds: an interval needs 2 at least")
    words, setting = recommended(options.run)
    rates: dict[str, list[float]] = {way: [] for way in WAYS}
    for at in range(options.rounds):
        for place in range(len(WAYS)):
            way = WAYS[(at + place) % len(WAYS)]
            rates[way].append(measured(way, words, setting, options.time))
    print(f"profharness serve {shlex.join(words)}; {options.rounds} rounds of {options.time:g} s")
    ratios: dict[str, dict[str, float]] = {}
    for way, values in rates.items():
        mean, half = mean_of(values)
        told = f"{way:>10}: {mean:.4g} ± {half:.2g} items/s"
        if way != "scan":
            pairs = zip(values, rates["scan"], strict=True)
            log, around = mean_of([math.log(one / other) for one, other in pairs])
            low, high = math.exp(log - around), math.exp(log + around)
            ratios[way] = {"value": math.exp(log), "low": low, "high": high}
            told += f", {math.exp(log):.3f} of the scan's ({low:.3f} to {high:.3f})"
        print(told)
    if options.keep:
        kept: dict[str, object] = {
            "line": shlex.join(words),
            "setting": setting,
            "seconds": options.time,
            "rates": rates,
            "ratios": ratios,
            "machine": description.machine(("profharness", "torch", "onnxruntime")),
        }
        print(description.keep("serve-again", kept))
    return 0 if all(one["high"] >= 1.0 for one in ratios.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

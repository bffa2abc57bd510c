"""Time and memory of the trace engine against its peers, in one run: `python benchmarks/scale.py
[--million | --full] [--ranks N]`.

Generated Kineto traces of 10 000 and 100 000 kernels (a million with `--million`) are read by whole
processes, imports included, one after the other. CPU time is user and system, the least of the
repeats; memory is the largest resident set. `hotspots` is kernels by name and busy time as a table,
`geometry` the same as JSON, which tells the launch geometry of each kernel too, `report` everything
that `profharness metrics` knows, `path` the same with the critical path, `page` the whole report as
one page of HTML. These and `json` run in turn, so that they can be compared. `json`, `orjson` and
HolisticTraceAnalysis do what `hotspots` does (the first two add up kernels and nothing else).
HolisticTraceAnalysis is installed into an environment of its own under .tools the first time.
Answers are checked against the generator's truth. With `--ranks` so many copies of the middle trace
are summarised together.

`merge` writes the trace for Perfetto, `pftrace` and `kineto` read all records of that file and of
the original, and `protobuf` decodes the small one with protobuf's implementation in Python.
`--full` adds a trace of 1,000,000 kernels, which the peers read too where they find the memory, and
one of 10,000,000 (19 GB) for `hotspots` alone, with a trace of 1,000,000 read right before it and
right after it: how the cost per kernel grows is told against these, since machines change their
speed within minutes. It takes about ten minutes of CPU time; what was left out and why stands in
the results.

Results go to benchmarks/results/scale-DATE.json with a description of the machine.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import description

from profharness.cli.hotspots import TABLE_ROWS

ROOT = Path(__file__).resolve().parent.parent
SMALLEST, LARGEST = 10_000, 1_000_000
PEER = "HolisticTraceAnalysis==0.5.0"
MAKE = (
    f"{shlex.quote(sys.executable)} "
    f"{shlex.quote(str(ROOT / 'benchmarks' / 'make_kineto.py'))} --kernels {{kernels}} -o "
    f"{{out}} --truth {{truth}}"
)
LOAD = """
import sys
import {module}
with open(sys.argv[1], "rb") as file:
    events = {module}.loads(file.read())["traceEvents"]
totals = {{}}
for event in events:
    if event.get("cat") == "kernel":
        totals[event["name"]] = totals.get(event["name"], 0) + event["dur"]
"""
HTA = """
import sys
from hta.trace_analysis import TraceAnalysis
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir="")
analysis.get_gpu_kernel_breakdown(visualize=False)
analysis.get_temporal_breakdown(visualize=False)
"""


READ = """
import sys
from pathlib import Path
from profharness import readers
trace = readers.read(Path(sys.argv[1]))
assert len(trace.kernels) == {kernels} and len(trace.ops) == 2 * {kernels}
"""
PROTOBUF = """
import sys
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace
with open(sys.argv[1], "rb") as file:
    trace = Trace.FromString(file.read())
stages = [packet for packet in trace.packet if packet.HasField("gpu_render_stage_event")]
kernels = [(packet.timestamp, packet.gpu_render_stage_event.duration) for packet in stages]
assert len(kernels) == {kernels}
"""
PER_MILLION_MIB = {
    "json": 12_000,
    "orjson": 15_500,
    "HTA": 13_000,
}  # memory that a peer needs for a million kernels
IN_TURN = ("hotspots", "geometry", "report", "path", "page", "json")
CHECKED = ("hotspots", "geometry", "report", "path")
SPARE_MIB = 2_000  # for everything else on the machine


@dataclass(frozen=True)
class Cost:
    """What one process used."""

    cpu_s: float
    wall_s: float
    peak_mib: float


# A small process between: the largest resident set of a child counts that of the process which
# started it, before the command's own program begins.
LAUNCH = """
import json, os, sys
said = int(sys.argv[1])
os.set_inheritable(said, False)
_, status, used = os.wait4(os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ), 0)
os.write(said, json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]).encode())
sys.exit(os.waitstatus_to_exitcode(status) and 1)
"""


def measured(command: list[str], out: IO[bytes] | int, err: IO[bytes]) -> tuple[int, float, float]:
    """Exit status, CPU seconds and peak MiB of one command and the processes that it waited for."""
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", LAUNCH, str(writing), *command],
            stdout=out,
            stderr=err,
            pass_fds=(writing,),
            env=environment(),
        )
    finally:
        os.close(writing)
    with os.fdopen(reading) as said:
        cpu, peak = json.loads(said.read() or "[0, 0]")
    return process.wait(), cpu, peak


def environment() -> dict[str, str]:
    """That of this process, with compiled modules used and kept, as an installation has them."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(
    command: list[str], repeats: int = 1, out: IO[bytes] | int = subprocess.DEVNULL
) -> Cost | None:
    """The least CPU time of the repeats, with that run's wall time and the largest peak; None where
    the command fails.
    """
    runs = []
    for _ in range(repeats):
        begun = time.perf_counter()
        with tempfile.TemporaryFile() as err:
            if not isinstance(out, int):  # what the last run says is kept
                out.seek(0)
                out.truncate()
            status, cpu, peak = measured(command, out, err)
            if status:
                err.seek(0)
                print(
                    f"{shlex.join(command[:3])} ... failed: "
                    f"{err.read().decode(errors='replace').strip().splitlines()[-1:]}",
                    file=sys.stderr,
                )
                return None
        runs.append(Cost(cpu, time.perf_counter() - begun, peak))
    return least(runs)


def least(runs: list[Cost]) -> Cost:
    """The run with the least CPU time, with the largest peak of all."""
    best = min(runs, key=lambda cost: cost.cpu_s)
    return Cost(
        round(best.cpu_s, 3), round(best.wall_s, 3), round(max(cost.peak_mib for cost in runs), 1)
    )


def peer_python() -> Path | None:
    """The interpreter of the peer's environment, made the first time; None where it cannot be
    installed.
    """
    folder = ROOT / ".tools" / "hta"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {PEER} into .tools/hta", file=sys.stderr)
        done = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        done = (
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEER], check=False)
            if not done.returncode
            else done
        )
        if done.returncode:
            print(f"{PEER} cannot be installed: its rows are left out", file=sys.stderr)
            return None
        (folder / "installed").touch()
    return python


def ways(trace: Path, peer: Path | None, kernels: int) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "profharness"]
    found = {
        "hotspots": [*ours, "hotspots", str(trace)],
        "geometry": [*ours, "hotspots", str(trace), "--json"],
    }
    if kernels > LARGEST:
        return {"hotspots": found["hotspots"]}
    merged = str(trace.with_suffix(".pftrace"))
    read = READ.format(kernels=kernels)
    found |= {
        "report": [*ours, "metrics", str(trace), "--json"],
        "path": [*ours, "metrics", str(trace), "--critical-path", "--json"],
        "page": [*ours, "report", str(trace), "-o", str(trace.with_suffix(".html")), "--force"],
        "merge": [*ours, "merge", str(trace), "-o", merged, "--force"],
        "kineto": [sys.executable, "-c", read, str(trace)],
        "pftrace": [sys.executable, "-c", read, merged],
    }
    if kernels <= SMALLEST:
        found["protobuf"] = [
            "env",
            "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python",
            sys.executable,
            "-c",
            PROTOBUF.format(kernels=kernels),
            merged,
        ]
    found |= {
        module: [sys.executable, "-c", LOAD.format(module=module), str(trace)]
        for module in ("json", "orjson")
    }
    if peer is not None:
        found["HTA"] = [str(peer), "-c", HTA, str(trace)]
    return found


def check(name: str, text: str, truth: Path) -> None:
    """Raises AssertionError where what `hotspots` or `metrics` printed is not the generator's
    truth: a table by the calls of each kernel. Of a page and of the peers nothing is looked at.
    """
    if name not in CHECKED:
        return
    expected = json.loads(truth.read_text())
    totals = {
        row["name"]: (row["count"], row["total_ns"])
        for row in expected["by_name"]
        if not row["name"].startswith("Mem")
    }
    if name == "hotspots":
        rows = [re.split(r"  +", line.strip()) for line in text.splitlines()[2:]]
        found = {row[-1]: int(re.sub(r"\s", "", row[2])) for row in rows if len(row) > 2}
        assert len(found) == min(len(totals), TABLE_ROWS)
        assert all(totals[kernel][0] == calls for kernel, calls in found.items())
        return
    answer = json.loads(text)
    if name in ("report", "path"):
        assert (answer["trace"]["busy_any_ns"], answer["trace"]["span_ns"]) == (
            expected["busy_union_ns"],
            expected["span_ns"],
        )
        return
    assert {row["name"]: (row["calls"], row["total_ns"]) for row in answer["rows"]} == totals
    assert answer["busy_any_ns"] == expected["busy_union_ns"]


def why_not(name: str, kernels: int, options: argparse.Namespace) -> str:
    """Why a peer does not read a trace of this size; empty where it does."""
    if name not in PER_MILLION_MIB:
        return ""
    if kernels > (options.hta_upto if name == "HTA" else options.peers_upto):
        return "larger than was asked for"
    needed, free = (
        PER_MILLION_MIB[name] * kernels // 1_000_000 + SPARE_MIB,
        description.memory("MemAvailable"),
    )
    return f"needs about {needed} MiB, of which {free} are free" if needed > free else ""


def measure(
    trace: Path, truth: Path, options: argparse.Namespace, kernels: int, peer: Path | None
) -> tuple[dict[str, Cost], dict[str, str]]:
    """Costs, and why the others were left out."""
    commands = ways(trace, peer, kernels)
    left_out = {name: why for name in commands if (why := why_not(name, kernels, options))}
    commands = {name: command for name, command in commands.items() if name not in left_out}
    costs = in_turn(
        {name: commands.pop(name) for name in IN_TURN if name in commands},
        1 if kernels > LARGEST else options.repeats,
        truth,
    )
    for name, command in commands.items():
        repeats = (
            1 if name in ("HTA", "protobuf", "merge") or kernels >= 1_000_000 else options.repeats
        )
        if (cost := run(command, repeats)) is not None:
            costs[name] = cost
    return costs, left_out


def in_turn(commands: dict[str, list[str]], repeats: int, truth: Path) -> dict[str, Cost]:
    """Costs of what is to be compared: one after the other and again, so that all meet the machine
    in the same moods. Answers are checked.
    """
    runs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            with tempfile.TemporaryFile() as out:
                if (cost := run(command, out=out)) is not None:
                    runs[name].append(cost)
                    out.seek(0)
                    check(name, out.read().decode(), truth)
    return {name: least(done) for name, done in runs.items() if len(done) == repeats}


def show(
    kernels: int,
    told: dict[str, Any],
    costs: dict[str, Cost],
    before: dict[str, Cost],
    grown: float,
) -> None:
    base = costs["hotspots"]
    print(f"\n{kernels:,} kernels, {told['bytes'] / 1e6:.0f} MB")
    print(
        f"{'':10}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}"
        f"{'CPU / hotspots':>16}{'peak / hotspots':>17}{'CPU grows':>11}"
    )
    for name, cost in costs.items():
        growth = (
            f"{cost.cpu_s / before[name].cpu_s / grown:11.2f}" if name in before else f"{'-':>11}"
        )
        print(
            f"{name:10}{cost.cpu_s:8.2f}{cost.wall_s:8.2f}{cost.peak_mib:10.0f}"
            f"{cost.cpu_s / base.cpu_s:16.1f}{cost.peak_mib / base.peak_mib:17.1f}{growth}"
        )
    for way, why in told["left_out"].items():
        print(f"{way:10}left out: {why}")
    if "growth" in told:
        against = told["growth"]
        first, last = against["cpu_s_before_and_after"]
        print(
            f"cost per kernel: {against['cost_per_kernel_ratio']:.2f} times that of "
            f"{against['than_kernels']:,}, which took {first:.2f} CPU s before and {last:.2f} "
            "after"
        )


def of_ranks(trace: Path, count: int, folder: Path, single: Cost) -> dict[str, float]:
    """The summary of so many copies: wall time against the single file's, divided by the
    processes.
    """
    paths = []
    for rank in range(count):
        paths.append(folder / f"rank{rank}.json")
        os.link(trace, paths[-1])
    processes = len(os.sched_getaffinity(0))
    cost = run(
        [
            sys.executable,
            "-m",
            "profharness",
            "metrics",
            "--json",
            "--processes",
            str(processes),
            *map(str, paths),
        ]
    )
    assert cost is not None
    ratio = cost.wall_s / (count * single.wall_s / processes)
    cpu_ratio = cost.cpu_s / (count * single.cpu_s)
    print(
        f"\n{count} ranks by {processes} processes: {cost.wall_s:.1f} s wall, "
        f"{cost.cpu_s:.1f} CPU s, peak {cost.peak_mib:.0f} MiB (largest process);"
        f" {ratio:.2f} times (ranks x one file / processes) in wall time, "
        f"{cpu_ratio:.2f} times (ranks x one file) in CPU time"
    )
    return {
        "ranks": count,
        "processes": processes,
        "wall_ratio": round(ratio, 3),
        "cpu_ratio": round(cpu_ratio, 3),
        **asdict(cost),
    }


def make(command: str, kernels: int, trace: Path, truth: Path) -> None:
    """Write a trace and its truth."""
    subprocess.run(
        shlex.split(command.format(kernels=kernels, out=trace, truth=truth)),
        check=True,
        stderr=subprocess.DEVNULL,
    )


def beside(small: Path) -> Cost:
    """`hotspots` of the trace that a larger one is compared with."""
    cost = run(ways(small, None, LARGEST)["hotspots"])
    assert cost is not None
    return cost


def growth(kernels: int, cost: Cost, around: list[Cost]) -> dict[str, Any]:
    """The cost per kernel against that of the smaller trace, read before and after."""
    small = [one.cpu_s for one in around]
    return {
        "than_kernels": LARGEST,
        "cpu_s_before_and_after": small,
        "cost_per_kernel_ratio": round(
            cost.cpu_s / kernels / (sum(small) / len(small) / LARGEST), 3
        ),
    }


def of_size(
    kernels: int, folder: Path, options: argparse.Namespace, peer: Path | None
) -> tuple[dict[str, Cost], dict[str, Any]]:
    """Costs of one size, and what else is told of it. The trace stays in the folder."""
    trace, truth, small = folder / "trace.json", folder / "truth.json", folder / "small.json"
    load = [round(one, 2) for one in os.getloadavg()]
    make(options.make, kernels, trace, truth)
    around = []
    if kernels > LARGEST:
        make(options.make, LARGEST, small, folder / "small-truth.json")
        around.append(beside(small))
    costs, left_out = measure(trace, truth, options, kernels, peer)
    told: dict[str, Any] = {
        "load_average": load,
        "bytes": trace.stat().st_size,
        "left_out": left_out,
    }
    if around:
        told["growth"] = growth(kernels, costs["hotspots"], [*around, beside(small)])
    return costs, told


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--million", action="store_true", help="a trace of 1,000,000 kernels too (1.9 GB)"
    )
    parser.add_argument(
        "--full",
        action="store_true",
        help="1,000,000 kernels for everybody, and 10,000,000 for hotspots (20 GB of disk)",
    )
    parser.add_argument(
        "--sizes",
        type=lambda text: [int(one) for one in text.split(",")],
        help="measure only traces of so many kernels, and keep today's results of the others",
    )
    parser.add_argument(
        "--hta-upto",
        type=int,
        default=100_000,
        help="the largest trace that HolisticTraceAnalysis reads (it takes minutes for a million)",
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument(
        "--ranks",
        type=int,
        default=0,
        help="summarise so many copies of the 100,000-kernel trace together",
    )
    parser.add_argument(
        "--peers-upto", type=int, default=100_000, help="the largest trace that the others read"
    )
    parser.add_argument("--no-hta", action="store_true")
    parser.add_argument(
        "--make",
        default=MAKE,
        help="command that writes {kernels} kernels to {out}, and their {truth}",
    )
    options = parser.parse_args()
    if options.full:
        options.peers_upto = max(options.peers_upto, 1_000_000)
    peer = None if options.no_hta else peer_python()
    compileall.compile_dir(
        ROOT / "profharness", quiet=1
    )  # what pip does where the package is installed
    described = description.machine(("profharness", "numpy", "msgspec", "orjson", "pyarrow"))
    results: dict[str, object] = {
        "date": description.today(),
        "machine": {**described, "peer": PEER},
        "generator": "benchmarks/make_kineto.py" if options.make == MAKE else "another",
    }
    target = (
        ROOT
        / "benchmarks"
        / "results"
        / f"scale-{results['date']}{'-full' if options.full else ''}.json"
    )
    target.parent.mkdir(parents=True, exist_ok=True)
    traces: list[dict[str, Any]] = []
    if options.sizes and target.exists():  # a long measurement goes on: the other sizes stay
        earlier = json.loads(target.read_text())
        traces = [one for one in earlier["traces"] if one["kernels"] not in options.sizes]
        results |= {name: earlier[name] for name in ("ranks",) if name in earlier}
    last = max(
        (one for one in traces if one["kernels"] < min(options.sizes or [0])),
        key=lambda one: one["kernels"],
        default=None,
    )
    before = {name: Cost(**cost) for name, cost in last["costs"].items()} if last else {}
    previous = last["kernels"] if last else 0
    sizes = options.sizes or [
        10_000,
        100_000,
        *([1_000_000] if options.million or options.full else []),
        *([10_000_000] if options.full else []),
    ]
    for kernels in sizes:
        if kernels > LARGEST and (free := shutil.disk_usage(tempfile.gettempdir()).free) < 40e9:
            print(f"\n{kernels:,} kernels: left out, of 40 GB of disk {free / 1e9:.0f} are free")
            results["left_out"] = f"{kernels} kernels: of 40 GB of disk {free / 1e9:.0f} were free"
            continue
        with tempfile.TemporaryDirectory() as name:
            costs, told = of_size(kernels, Path(name), options, peer)
            show(kernels, told, costs, before, kernels / previous if previous else 1.0)
            traces.append(
                {
                    "kernels": kernels,
                    **told,
                    "costs": {way: asdict(cost) for way, cost in costs.items()},
                }
            )
            if kernels == 100_000 and options.ranks:
                results["ranks"] = of_ranks(
                    Path(name) / "trace.json", options.ranks, Path(name), costs["report"]
                )
        before, previous = costs, kernels
        target.write_text(
            json.dumps(
                {**results, "traces": sorted(traces, key=lambda one: int(one["kernels"]))}, indent=1
            )
            + "\n"
        )
    print(f"\n{target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

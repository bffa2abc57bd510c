"""Time and memory of the trace engine against its peers, in one run: `python benchmarks/scale.py [--million] [--ranks N]`.

Generated Kineto traces of 10 000 and 100 000 kernels (a million with `--million`) are read by whole processes,
imports included, one after the other. CPU time is user and system, the least of the repeats; memory is the largest
resident set. `hotspots` is kernels by name and busy time, `report` everything that `profharness metrics` knows;
`json`, `orjson` and HolisticTraceAnalysis do what `hotspots` does (the first two add up kernels and nothing else).
HolisticTraceAnalysis is installed into an environment of its own under .tools the first time. Answers are checked
against the generator's truth. With `--ranks` so many copies of the middle trace are summarised together.

Results go to benchmarks/results/scale-DATE.json with a description of the machine.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEER = "HolisticTraceAnalysis==0.5.0"
MAKE = f"{shlex.quote(sys.executable)} {shlex.quote(str(ROOT / 'benchmarks' / 'make_kineto.py'))} --kernels {{kernels}} -o {{out}} --truth {{truth}}"
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


@dataclass(frozen=True)
class Cost:
    """What one process used."""

    cpu_s: float
    wall_s: float
    peak_mib: float


def run(command: list[str], repeats: int = 1) -> Cost | None:
    """The least CPU time of the repeats, with that run's wall time and the largest peak; None where the command fails."""
    runs = []
    for _ in range(repeats):
        begun = time.perf_counter()
        with tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=err)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if status:
                err.seek(0)
                print(f"{shlex.join(command[:3])} ... failed: {err.read().decode(errors='replace').strip().splitlines()[-1:]}", file=sys.stderr)
                return None
        runs.append(Cost(used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss / 1024))
    best = min(runs, key=lambda cost: cost.cpu_s)
    return Cost(round(best.cpu_s, 3), round(best.wall_s, 3), round(max(cost.peak_mib for cost in runs), 1))


def peer_python() -> Path | None:
    """The interpreter of the peer's environment, made the first time; None where it cannot be installed."""
    folder = ROOT / ".tools" / "hta"
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {PEER} into .tools/hta", file=sys.stderr)
        done = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False)
        done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", PEER], check=False) if not done.returncode else done
        if done.returncode:
            print(f"{PEER} cannot be installed: its rows are left out", file=sys.stderr)
            return None
        (folder / "installed").touch()
    return python


def ways(trace: Path, peer: Path | None) -> dict[str, list[str]]:
    ours = [sys.executable, "-m", "profharness"]
    found = {"hotspots": [*ours, "hotspots", str(trace), "--json"], "report": [*ours, "metrics", str(trace), "--json"],
             "json": [sys.executable, "-c", LOAD.format(module="json"), str(trace)],
             "orjson": [sys.executable, "-c", LOAD.format(module="orjson"), str(trace)]}
    if peer is not None:
        found["HTA"] = [str(peer), "-c", HTA, str(trace)]
    return found


def check(trace: Path, truth: Path) -> None:
    """Raises AssertionError where an answer is not the generator's."""
    expected = json.loads(truth.read_text())
    said = {command: json.loads(subprocess.run([sys.executable, "-m", "profharness", command, str(trace), "--json"], check=True, capture_output=True).stdout)
            for command in ("hotspots", "metrics")}
    totals = {row["name"]: (row["count"], row["total_ns"]) for row in expected["by_name"] if not row["name"].startswith("Mem")}
    assert {row["name"]: (row["calls"], row["total_ns"]) for row in said["hotspots"]["rows"]} == totals
    assert said["hotspots"]["busy_any_ns"] == said["metrics"]["trace"]["busy_any_ns"] == expected["busy_union_ns"]
    assert said["metrics"]["trace"]["span_ns"] == expected["span_ns"]


def measure(trace: Path, options: argparse.Namespace, kernels: int, peer: Path | None) -> dict[str, Cost]:
    costs: dict[str, Cost] = {}
    for name, command in ways(trace, peer).items():
        if name in ("json", "orjson", "HTA") and kernels > options.peers_upto:
            continue
        repeats = 1 if name == "HTA" or kernels >= 1_000_000 else options.repeats
        if (cost := run(command, repeats)) is not None:
            costs[name] = cost
    return costs


def show(kernels: int, trace: Path, costs: dict[str, Cost], before: dict[str, Cost], grown: float) -> None:
    base = costs["hotspots"]
    print(f"\n{kernels:,} kernels, {trace.stat().st_size / 1e6:.0f} MB")
    print(f"{'':10}{'CPU s':>8}{'wall s':>8}{'peak MiB':>10}{'CPU / hotspots':>16}{'peak / hotspots':>17}{'CPU grows':>11}")
    for name, cost in costs.items():
        growth = f"{cost.cpu_s / before[name].cpu_s / grown:11.2f}" if name in before else f"{'-':>11}"
        print(f"{name:10}{cost.cpu_s:8.2f}{cost.wall_s:8.2f}{cost.peak_mib:10.0f}{cost.cpu_s / base.cpu_s:16.1f}{cost.peak_mib / base.peak_mib:17.1f}{growth}")


def of_ranks(trace: Path, count: int, folder: Path, single: Cost) -> dict[str, float]:
    """The summary of so many copies: wall time against the single file's, divided by the processes."""
    paths = []
    for rank in range(count):
        paths.append(folder / f"rank{rank}.json")
        os.link(trace, paths[-1])
    processes = len(os.sched_getaffinity(0))
    cost = run([sys.executable, "-m", "profharness", "metrics", "--json", "--processes", str(processes), *map(str, paths)])
    assert cost is not None
    ratio = cost.wall_s / (count * single.wall_s / processes)
    cpu_ratio = cost.cpu_s / (count * single.cpu_s)
    print(f"\n{count} ranks by {processes} processes: {cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} CPU s, peak {cost.peak_mib:.0f} MiB (largest process);"
          f" {ratio:.2f} times (ranks x one file / processes) in wall time, {cpu_ratio:.2f} times (ranks x one file) in CPU time")
    return {"ranks": count, "processes": processes, "wall_ratio": round(ratio, 3), "cpu_ratio": round(cpu_ratio, 3), **asdict(cost)}


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def machine() -> dict[str, object]:
    """What the figures depend on; nothing that names the machine or its folders."""
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")), platform.machine())
    memory = next(int(line.split()[1]) // 1024 for line in Path("/proc/meminfo").read_text().splitlines() if line.startswith("MemTotal"))
    versions = {name: version(name) for name in ("profharness", "numpy", "msgspec", "orjson", "pyarrow")}
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "memory_mib": memory, "kernel": platform.release(), "python": platform.python_version(),
            "versions": {**versions, "peer": PEER}, "load_average": [round(one, 2) for one in os.getloadavg()]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--million", action="store_true", help="a trace of 1,000,000 kernels too (1.9 GB)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=0, help="summarise so many copies of the 100,000-kernel trace together")
    parser.add_argument("--peers-upto", type=int, default=100_000, help="the largest trace that the others read")
    parser.add_argument("--no-hta", action="store_true")
    parser.add_argument("--make", default=MAKE, help="command that writes {kernels} kernels to {out}, and their {truth}")
    options = parser.parse_args()
    peer = None if options.no_hta else peer_python()
    results: dict[str, object] = {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine(),
                                  "generator": "benchmarks/make_kineto.py" if options.make == MAKE else "another"}
    traces: list[object] = []
    before: dict[str, Cost] = {}
    previous = 0
    for kernels in (10_000, 100_000, *((1_000_000,) if options.million else ())):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            trace, truth = folder / "trace.json", folder / "truth.json"
            subprocess.run(shlex.split(options.make.format(kernels=kernels, out=trace, truth=truth)), check=True, stderr=subprocess.DEVNULL)
            check(trace, truth)
            costs = measure(trace, options, kernels, peer)
            show(kernels, trace, costs, before, kernels / previous if previous else 1.0)
            traces.append({"kernels": kernels, "bytes": trace.stat().st_size, "costs": {name: asdict(cost) for name, cost in costs.items()}})
            if kernels == 100_000 and options.ranks:
                results["ranks"] = of_ranks(trace, options.ranks, folder, costs["report"])
        before, previous = costs, kernels
    results["traces"] = traces
    target = ROOT / "benchmarks" / "results" / f"scale-{results['date']}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(results, indent=1) + "\n")
    print(f"\n{target.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

"""Speed and memory of the Kineto reader: `python benchmarks/read_kineto.py TRACE.json[.gz]`, or
`--make 'COMMAND {out}'`.

Each way of reading runs in a process of its own, imports included: CPU time (user and system, the
figure to compare where other work shares the machine) is the least of the repeats, which go through
all ways in turn; the peak is that process's largest resident set. `json` and `orjson` load the file
as Python objects and add up the kernels, which is the least that a script would do; `msgspec`
decodes the three fields that it needs into typed events, and `simdjson` (PyPI pysimdjson) takes
them from its parsed document: what these two libraries can do at best, before any reading of
arguments, links or times is done. `hotspots` reads names, times and devices of kernels and adds
them up; `devices` reads all that is known of them, their launch geometry too; `full` reads the
host's side too and links it. `--keep` writes the figures with the machine's description to
benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import description

LOAD = """
import gzip, sys
data = (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rb").read()
import {module}
events = {module}.loads(data)
events = events["traceEvents"] if isinstance(events, dict) else events
totals = {{}}
for e in events:
    if e.get("cat") in ("kernel", "Kernel"):
        totals[e["name"]] = totals.get(e["name"], 0) + e["dur"]
"""
OPENED = """
import gzip, sys
data = (gzip.open if sys.argv[1].endswith(".gz") else open)(sys.argv[1], "rb").read()
"""
MSGSPEC = (
    OPENED
    + """
import msgspec
class Event(msgspec.Struct):
    name: str = ""
    cat: str = ""
    dur: float = 0.0
class Document(msgspec.Struct):
    traceEvents: list[Event]
totals = {}
for e in msgspec.json.decode(data, type=Document).traceEvents:
    if e.cat in ("kernel", "Kernel"):
        totals[e.name] = totals.get(e.name, 0) + e.dur
"""
)
SIMDJSON = (
    OPENED
    + """
import simdjson
totals = {}
for e in simdjson.Parser().parse(data)["traceEvents"]:
    if e.get("cat") in ("kernel", "Kernel"):
        totals[e["name"]] = totals.get(e["name"], 0) + e["dur"]
"""
)
READ = """
import sys
from pathlib import Path
import numpy as np
from profharness.readers.kineto import reader as chrome_json
from profharness.trace.wanted import Wanted
trace = chrome_json.read(Path(sys.argv[1]), wanted=Wanted.{wanted})
totals = np.bincount(trace.kernels.name, weights=trace.kernels.dur_ns)
"""
# VmHWM begins with the program; the largest resident set of getrusage counts that of the process
# which started it, too
MEASURE = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(json.dumps([used.ru_utime + used.ru_stime, peak / 1024]))
"""
WAYS = {
    "hotspots": READ.format(wanted="TIMES"),
    "devices": READ.format(wanted="DEVICES"),
    "full": READ.format(wanted="ALL"),
    "json": LOAD.format(module="json"),
    "orjson": LOAD.format(module="orjson"),
    "msgspec": MSGSPEC,
    "simdjson": SIMDJSON,
}


def measure(script: str, trace: Path) -> tuple[float, float] | None:
    """CPU seconds and peak MiB of one run; None where a module that the script needs is not
    installed.
    """
    done = subprocess.run(
        [sys.executable, "-c", script + MEASURE, str(trace)],
        capture_output=True,
        text=True,
        check=False,
    )
    if "ModuleNotFoundError" in done.stderr:
        return None
    done.check_returncode()
    cpu, peak = json.loads(done.stdout)
    return cpu, peak


def report(trace: Path, repeats: int) -> dict[str, tuple[float, float]]:
    """Prints a line per way; the figures of those that ran."""
    print(
        f"{trace.name}: {trace.stat().st_size / 1e6:.0f} MB, the least CPU time of {repeats} "
        "runs each\n"
    )
    print(f"{'':10}{'CPU s':>8}{'peak MiB':>10}{'CPU / hotspots':>16}{'peak / hotspots':>17}")
    runs = [
        {name: measure(script, trace) for name, script in WAYS.items()} for _ in range(repeats)
    ]  # in turn, as the machine's speed changes
    costs: dict[str, tuple[float, float]] = {}
    for name in WAYS:
        done = [one for run in runs if (one := run[name]) is not None]
        if not done:
            print(f"{name:10}  not installed")
            continue
        found = costs[name] = min(cpu for cpu, _ in done), max(peak for _, peak in done)
        base = costs["hotspots"]
        print(
            f"{name:10}{found[0]:8.2f}{found[1]:10.0f}{found[0] / base[0]:16.1f}{found[1] / base[1]:17.1f}"
        )
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("trace", nargs="?", type=Path)
    given.add_argument("--make", help="command that writes a trace to {out}")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.trace or Path(folder) / "trace.json"
        if options.trace is None:
            subprocess.run(
                [part.replace("{out}", str(path)) for part in shlex.split(options.make)], check=True
            )
        costs = report(path, options.repeats)
        if options.keep:
            rows = {
                name: {"cpu_s": round(cpu, 3), "peak_mib": round(peak, 1)}
                for name, (cpu, peak) in costs.items()
            }
            described = description.machine(
                ("profharness", "numpy", "orjson", "msgspec", "pysimdjson")
            )
            print(
                "\n"
                f"{description.keep('read-kineto', {'machine': described, 'bytes': path.stat().st_size, 'repeats': options.repeats, 'costs': rows})}"
            )


if __name__ == "__main__":
    main()

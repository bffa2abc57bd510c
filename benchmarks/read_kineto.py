"""Speed and memory of the Kineto reader: `python benchmarks/read_kineto.py TRACE.json[.gz]`, or `--make 'COMMAND {out}'`.

Each way of reading runs in a process of its own, imports included: CPU time (user and system, the figure to compare where
other work shares the machine) is the least of the repeats, the peak is that process's largest resident set.
`json` and `orjson` load the file as Python objects and add up the kernels, which is the least that a script would do;
`hotspots` reads all but operators and adds up kernels by name; `full` reads operators too and links them.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

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
READ = """
import sys
from pathlib import Path
import numpy as np
from profharness.readers import chrome_json
trace = chrome_json.read(Path(sys.argv[1]), ops={ops})
totals = np.bincount(trace.kernels.name, weights=trace.kernels.dur_ns)
"""
MEASURE = """
import json, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))
"""
WAYS = {"hotspots": READ.format(ops=False), "full": READ.format(ops=True), "json": LOAD.format(module="json"),
        "orjson": LOAD.format(module="orjson")}


def measure(script: str, trace: Path, repeats: int) -> tuple[float, float] | None:
    """CPU seconds and peak MiB; None where a module that the script needs is not installed."""
    runs = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, "-c", script + MEASURE, str(trace)], capture_output=True, text=True, check=False)
        if "ModuleNotFoundError" in done.stderr:
            return None
        done.check_returncode()
        runs.append(json.loads(done.stdout))
    return min(cpu for cpu, _ in runs), max(peak for _, peak in runs)


def report(trace: Path, repeats: int) -> None:
    print(f"{trace.name}: {trace.stat().st_size / 1e6:.0f} MB, the least CPU time of {repeats} runs each\n")
    print(f"{'':10}{'CPU s':>8}{'peak MiB':>10}{'CPU / hotspots':>16}{'peak / hotspots':>17}")
    base = None
    for name, script in WAYS.items():
        found = measure(script, trace, repeats)
        if found is None:
            print(f"{name:10}  not installed")
            continue
        cpu, peak = found
        base = base or found
        print(f"{name:10}{cpu:8.2f}{peak:10.0f}{cpu / base[0]:16.1f}{peak / base[1]:17.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given = parser.add_mutually_exclusive_group(required=True)
    given.add_argument("trace", nargs="?", type=Path)
    given.add_argument("--make", help="command that writes a trace to {out}")
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    if options.trace is not None:
        report(options.trace, options.repeats)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        subprocess.run([part.replace("{out}", str(path)) for part in shlex.split(options.make)], check=True)
        report(path, options.repeats)


if __name__ == "__main__":
    main()

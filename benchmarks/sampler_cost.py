"""What the telemetry sampler costs and how punctual it is, at 1, 10 and 100 Hz, beside a small process tree.

    python benchmarks/sampler_cost.py [SECONDS]

Prints per rate: the sampler's own CPU time in per cent of one core (start and end included, and for the steady part
alone), how late its reads begin after their deadlines, the rate achieved, and the ticks missed. The tree that it watches
holds 1 root and 4 sleeping children; what else the machine does decides the tail of the lateness.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from profharness.readers import telemetry

RATES = (1.0, 10.0, 100.0)
ROOT = Path(__file__).resolve().parent.parent
TREE = "import subprocess, sys, time\nfor _ in range(4): subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\ntime.sleep(600)"


def measure(folder: Path, hz: float, seconds: float, root: int) -> tuple[float, float, float, float, float, int]:
    """CPU % in all, CPU % steady, late p50 and p99 in µs, achieved Hz, missed ticks."""
    roots = folder / "roots"
    roots.write_text(f"{root}\n")
    spec = folder / "spec.json"
    spec.write_text(json.dumps({"output_dir": str(folder), "host": f"at-{hz:g}", "hz": hz, "roots_file": str(roots),
                                "parent_pid": os.getpid(), "sources": ["cpu"]}))
    sampler = subprocess.Popen([sys.executable, "-m", "profharness.telemetry", "--spec", str(spec)], cwd=ROOT)
    ready = folder / f"at-{hz:g}.ready.json"
    while not ready.exists():
        if sampler.poll() is not None:
            raise SystemExit(f"the sampler ended with status {sampler.returncode}")
        time.sleep(0.01)
    clock = (~sampler.pid << 3) | 2
    cpu_before, begin = time.clock_gettime_ns(clock), time.monotonic_ns()
    time.sleep(seconds)
    steady = (time.clock_gettime_ns(clock) - cpu_before) / (time.monotonic_ns() - begin)
    sampler.send_signal(signal.SIGTERM)
    sampler.wait()
    done = json.loads((folder / f"at-{hz:g}.done.json").read_text())
    trace = telemetry.read(folder / f"at-{hz:g}.samples.bin")
    facts = dict(trace.sources[0].details)
    at = trace.samples.at_ns[trace.samples.metric == trace.strings.find("processes_tree")]
    achieved = (len(at) - 2) / ((at[-2] - at[0]) / 1e9) if len(at) > 2 else float("nan")  # the last row comes at the end, off the grid
    return (done["cpu_ns"] / (seconds * 1e9) * 100, steady * 100, int(facts["late_p50_ns"]) / 1e3,
            int(facts["late_p99_ns"]) / 1e3, float(np.round(achieved, 4)), int(facts["missed"]))


def main() -> None:
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    tree = subprocess.Popen([sys.executable, "-c", TREE], start_new_session=True)
    print(f"{'Hz':>5} {'CPU % all':>10} {'CPU % steady':>13} {'late p50 µs':>12} {'late p99 µs':>12} {'achieved Hz':>12} {'missed':>7}")
    try:
        for hz in RATES:
            with tempfile.TemporaryDirectory() as folder:
                whole, steady, p50, p99, achieved, missed = measure(Path(folder), hz, seconds, tree.pid)
            print(f"{hz:5g} {whole:10.2f} {steady:13.3f} {p50:12.1f} {p99:12.1f} {achieved:12.4f} {missed:7d}")
    finally:
        os.killpg(tree.pid, signal.SIGKILL)
        tree.wait()


if __name__ == "__main__":
    main()

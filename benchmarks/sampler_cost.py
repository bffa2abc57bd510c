"""What the telemetry sampler costs and how punctual it is, for CPU plus the two GPUs of an emulated
package; and the shell loop that it replaces.

    python benchmarks/sampler_cost.py [--seconds S] [--load] [--keep]

Per rate: the sampler's own CPU time in per cent of one core (start and end included, and for the
steady part alone), the same of a Python loop that only wakes at that rate (what no sampler in
Python can go below on this machine), how late the reads begin after their deadlines, the rate
achieved, ticks missed, and records lost (neither recorded nor counted as missed). The tree that it
watches holds 1 root and 4 sleeping children. `--load` keeps all other cores busy.

Then, in one run and over the same emulated /sys, the usual shell loop around the real rocm-smi
(fetched by `tests/tools/get_amd_tools.py`, in a mount namespace) beside the sampler at four times
the rate that the loop asks for.

Last, what hardware counters of an emulated MI300X add: CPU time of the sampler and of the counting
process at 2 and 10 Hz, and of one reading of all 784 records.
The library is a compiled stand-in, so the time that AMD's own library and its HSA runtime take is
not in it. `--keep` writes all figures to benchmarks/results.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from profharness.layers.telemetry import sampler_command  # noqa: E402 - the checkout comes first
from profharness.rundir import telemetry  # noqa: E402 - the checkout comes first
from tests.fakes import device_counting  # noqa: E402 - the checkout comes first
from tests.telemetry import emulated, namespace  # noqa: E402 - the checkout comes first
from tests.telemetry.running import Sampler  # noqa: E402 - the checkout comes first
from tests.tools.get_amd_tools import DEFAULT, rocm_smi  # noqa: E402 - the checkout comes first

RATES = (1.0, 10.0, 100.0)
COUNTING_RATES = (2.0, 10.0)
GOALS = {10.0: 0.3, 100.0: 1.5}  # per cent of a core
TREE = (
    "import subprocess, sys, time\nfor _ in range(4): subprocess.Popen([sys.executable, "
    "'-c', 'import time; time.sleep(600)'])\ntime.sleep(600)"
)
BURN = "while True: pass"
WAKE = """
import sys, time, gc
from profharness.telemetry import process
timer = process.prepare()
period = round(1e9 / float(sys.argv[1]))
start, before = time.monotonic_ns(), time.process_time_ns()
end = start + int(float(sys.argv[2]) * 1e9)
timer.start(start + period, period)
while (now := time.monotonic_ns()) < end:
    timer.wait()
print((time.process_time_ns() - before) / (now - start) * 100)
"""
LOOP_HZ = 4.0
# Four programs and their pipes per sample, as such loops are written; the readings go to one CSV.
LOOP = """
smi="$1"; out="$2"
while true; do
    now=$(date '+%F %T.%1N')
    gpu=$("$smi" --showuse | awk '/GPU\\[0\\]/ {print $6; exit}')
    mem=$("$smi" --showmemuse | awk '/GPU\\[0\\]/ {print $7; exit}')
    cpu=$(top -bn1 | awk '/Cpu\\(s\\)/ {print 100 - $8}')
    ram=$(free | awk '/Mem/ {printf("%.2f", $3/$2 * 100)}')
    echo "$now, $gpu, $mem, $cpu, $ram" >> "$out"
    sleep 0.25
done
"""


@contextmanager
def running(*commands: list[str]) -> Iterator[list[int]]:
    """Processes in groups of their own, ended at the end; their pids."""
    processes = [subprocess.Popen(command, start_new_session=True) for command in commands]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def sampler(folder: Path, hz: float, root: int, sysfs: str) -> subprocess.Popen[bytes]:
    """The sampler, once it samples."""
    roots = folder / "roots"
    roots.write_text(f"{root}\n")
    spec = folder / "spec.json"
    spec.write_text(
        json.dumps(
            {
                "output_dir": str(folder),
                "host": "h",
                "hz": hz,
                "roots_file": str(roots),
                "parent_pid": os.getpid(),
                "sources": ["cpu", "amd"],
                "sysfs": sysfs,
            }
        )
    )
    command = sampler_command(spec)
    process = subprocess.Popen(command.argv, env=command.environment(os.environ), cwd=ROOT)
    while not (folder / "h.ready.json").exists():
        if process.poll() is not None:
            raise SystemExit(f"the sampler ended with status {process.returncode}")
        time.sleep(0.01)
    return process


def stopped(process: subprocess.Popen[bytes], folder: Path) -> dict[str, Any]:
    """Its own account, after its end."""
    process.send_signal(signal.SIGTERM)
    process.wait()
    found: dict[str, Any] = json.loads((folder / "h.done.json").read_text())
    return found


def measure(hz: float, seconds: float, root: int) -> dict[str, Any]:
    """One rate, beside the loop that only wakes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        emulated.mi250x(folder / "sys").process(99, 50000, 44)
        process = sampler(folder, hz, root, str(folder / "sys"))
        time.sleep(1)
        clock = (~process.pid << 3) | 2
        cpu_before, begin = time.clock_gettime_ns(clock), time.monotonic_ns()
        waking = subprocess.run(
            [sys.executable, "-c", WAKE, f"{hz:g}", f"{seconds:g}"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        steady = (time.clock_gettime_ns(clock) - cpu_before) / (time.monotonic_ns() - begin)
        whole_s = (time.monotonic_ns() - begin) / 1e9 + 1
        done = stopped(process, folder)
        trace = telemetry.read(folder / "h.samples.bin")
    facts = dict(trace.sources[0].details)
    at = trace.samples.at_ns[trace.samples.metric == trace.strings.find("processes_tree")]
    grid = at[:-1]  # the last row comes at the end, off the grid
    ticks = round((int(grid[-1]) - int(grid[0])) / 1e9 * hz) + 1
    return {
        "hz": hz,
        "cpu_percent": done["cpu_ns"] / (whole_s * 1e9) * 100,
        "cpu_percent_steady": steady * 100,
        "waking_percent": float(waking.stdout),
        "late_p50_us": int(facts["late_p50_ns"]) / 1e3,
        "late_p99_us": int(facts["late_p99_ns"]) / 1e3,
        "achieved_hz": (ticks - 1) / ((int(grid[-1]) - int(grid[0])) / 1e9),
        "recorded": done["rows"],
        "missed": done["missed"],
        "lost": max(ticks - len(grid) - done["missed"], 0),
        "failed": len(done["failed"]),
        "read_us": {
            key.removeprefix("read_p50_ns."): int(value) / 1e3
            for key, value in facts.items()
            if key.startswith("read_p50_ns.")
        },
    }


def against_loop(seconds: float, root: int) -> dict[str, Any] | str:
    """The shell loop and the sampler over the same time and tree; a reason where that cannot be
    done.
    """
    if not rocm_smi(DEFAULT).is_file():
        return "no rocm-smi: python tests/tools/get_amd_tools.py"
    if why := namespace.why_not():
        return why
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = emulated.mi250x(folder / "tree")
        smi, log = folder / "rocm-smi", folder / "ResourceLog.csv"
        smi.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{rocm_smi(DEFAULT)}" "$@"\n')
        smi.chmod(0o755)
        log.touch()
        process = sampler(folder, 4 * LOOP_HZ, root, str(tree.root))
        clock = (~process.pid << 3) | 2
        limited = [
            "timeout",
            "-s",
            "TERM",
            f"{seconds:g}",
            *namespace.wrapped(tree, folder / "sys", "sh", "-c", LOOP, "sh", smi, log),
        ]
        before, own_before, begin = (
            resource.getrusage(resource.RUSAGE_CHILDREN),
            time.clock_gettime_ns(clock),
            time.monotonic(),
        )
        subprocess.run(limited, check=False, stderr=subprocess.DEVNULL)
        took = time.monotonic() - begin
        own = (time.clock_gettime_ns(clock) - own_before) / 1e9
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        rows = len(log.read_text().splitlines())
        done = stopped(process, folder)
    loop = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "seconds": took,
        "loop_hz": rows / took,
        "loop_percent": 100 * loop / took,
        "loop_cpu_s_per_sample": loop / max(rows, 1),
        "sampler_hz": 4 * LOOP_HZ,
        "sampler_percent": 100 * own / took,
        "sampler_missed": done["missed"],
        "times_less_cpu": loop / own,
        "times_the_rate": 4 * LOOP_HZ / (rows / took),
    }


def counting(seconds: float, hz: float) -> dict[str, Any]:
    """Hardware counters of a device at one rate, over a stand-in of AMD's library."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tree = emulated.mi300x(folder / "sys")
        device_counting.compiled("stand_in_kfd.c", folder / "kfd.so", "-ldl")
        environment = {
            **os.environ,
            **device_counting.playing((device_counting.MI300X,), device_counting.Load()),
            "ROCM_PATH": str(device_counting.rocm_tree(folder / "rocm")),
            "STAND_IN_KFD": "1.23,profiler",
            "LD_PRELOAD": str(folder / "kfd.so"),
        }
        with Sampler(
            folder,
            hz=10.0,
            sources=("device-counters",),
            sysfs=str(tree.root),
            counters_hz=hz,
            env=environment,
        ) as process:
            process.ready()
            children = Path(f"/proc/{process.process.pid}/task/{process.process.pid}/children")
            pids = (process.process.pid, int(children.read_text()))
            clocks = [(~pid << 3) | 2 for pid in pids]
            before, begin = [time.clock_gettime_ns(clock) for clock in clocks], time.monotonic_ns()
            time.sleep(seconds)
            after, length = (
                [time.clock_gettime_ns(clock) for clock in clocks],
                time.monotonic_ns() - begin,
            )
            process.stop()
        raw = telemetry.read_raw(folder / "node.samples.bin")
    used = [100 * (late - early) / length for early, late in zip(before, after, strict=True)]
    cycles = raw.samples.metric == raw.strings.find("counter_rate:GRBM_COUNT:0")
    return {
        "counters_hz": hz,
        "sampler_percent": used[0],
        "counting_percent": used[1],
        "counting_us_per_sample": used[1] / 100 / hz * 1e6,
        "intervals": int(cycles.sum()),
        "expected": int(seconds * hz),
    }


def show(found: dict[str, Any]) -> None:
    print(f"{found['load']}; load average {found['load_average'][0]:.1f}")
    print(
        f"{'Hz':>5} {'CPU % all':>10} {'CPU % steady':>13} {'only waking %':>14} {'goal %':>7} "
        f"{'late p50 µs':>12} {'late p99 µs':>12} {'achieved Hz':>12} {'missed':>7} {'lost':>5}"
    )
    for row in found["rates"]:
        print(
            f"{row['hz']:5g} {row['cpu_percent']:10.3f} {row['cpu_percent_steady']:13.3f} "
            f"{row['waking_percent']:14.3f} {GOALS.get(row['hz'], ''):>7} "
            f"{row['late_p50_us']:12.1f} {row['late_p99_us']:12.1f} {row['achieved_hz']:12.4f} "
            f"{row['missed']:7d} {row['lost']:5d}"
        )
    for row in found["device_counters"]:
        print(
            f"device counters at {row['counters_hz']:g} Hz: "
            f"sampler {row['sampler_percent']:.3f} %, "
            f"counting process {row['counting_percent']:.3f} % of a core "
            f"({row['counting_us_per_sample']:.0f} µs per sample of 784 records, stand-in "
            f"library); {row['intervals']} intervals in the time of {row['expected']}"
        )
    loop = found["shell_loop"]
    if isinstance(loop, str):
        print(f"shell loop: not measured: {loop}")
        return
    print(
        f"shell loop: {loop['loop_hz']:.2f} Hz ({LOOP_HZ:g} asked) for "
        f"{loop['loop_percent']:.1f} % of a core; sampler: {loop['sampler_hz']:g} Hz for "
        f"{loop['sampler_percent']:.3f} %: {loop['times_less_cpu']:.0f} times less CPU at "
        f"{loop['times_the_rate']:.1f} times the rate"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="per rate, and for the shell loop"
    )
    parser.add_argument("--load", action="store_true", help="keep all cores but one busy")
    parser.add_argument(
        "--keep", action="store_true", help="write the figures to benchmarks/results"
    )
    chosen = parser.parse_args()
    burners = (
        [[sys.executable, "-c", BURN]] * max((os.cpu_count() or 1) - 1, 1) if chosen.load else []
    )
    with running([sys.executable, "-c", TREE], *burners) as pids:
        found = {
            "made": datetime.now(UTC).isoformat(timespec="seconds"),
            "python": platform.python_version(),
            "kernel": platform.release(),
            "cpus": os.cpu_count(),
            "load": f"{len(burners)} busy loops beside it" if burners else "no load of our own",
            "load_average": os.getloadavg(),
            "rates": [measure(hz, chosen.seconds, pids[0]) for hz in RATES],
            "device_counters": [counting(chosen.seconds, hz) for hz in COUNTING_RATES],
            "shell_loop": against_loop(chosen.seconds, pids[0]),
        }
    show(found)
    if chosen.keep:
        path = (
            ROOT
            / "benchmarks/results"
            / f"sampler-{found['made'][:10]}{'-loaded' if chosen.load else ''}.json"
        )
        path.write_text(json.dumps(found, indent=1) + "\n")
        print(f"kept in {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

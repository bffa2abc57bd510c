"""Does `profharness fleet` forecast a real server? `python benchmarks/fleet_held_out.py [--model
sleep:5ms] [--seconds 10]`.

A PyTriton server with a model of known time and two instances is measured by two served scans: a
closed loop of several numbers of clients, then an open loop at shares of what the closed one
reached. Each closed level is forecast from the other closed ones, and each open level from all of
the closed ones: throughput and p99, 12 of each (p99 where the window has 1000 answers, as it has on
a quiet machine). Printed are both with their errors, a share of what was measured, and their median
and largest size. Nothing else should run on the machine; `load` in the results says how much did.
It takes about five minutes. Results go to benchmarks/results/fleet-held-out-DATE.json.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import description

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from profharness.analysis.fleet.measured import (  # noqa: E402  from this checkout
    HeldOut,
    MeasuredLevel,
    beside,
    device_of,
    held_out,
)
from profharness.analysis.fleet.records import Fleet  # noqa: E402  from this checkout
from profharness.understand.sizing import measured_device  # noqa: E402  from this checkout

CLIENTS = (1, 2, 3, 4, 6, 8, 12)
SHARES = (0.5, 0.6, 0.7, 0.8, 0.9)
THINK_MS = 2
SEED = 1


def main() -> int:
    """Measure, forecast, print and keep; 1 where a scan failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="sleep:5ms")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each level")
    asked = parser.parse_args()
    began, load = time.monotonic(), os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        closed_words = [f"--concurrency={','.join(map(str, CLIENTS))}", f"--think-ms={THINK_MS}"]
        closed, device = _measured(asked, closed_words, Path(folder) / "closed")
        most = max(level.throughput for level in closed)
        rates = ",".join(f"{share * most:.0f}" for share in SHARES)
        opened, _ = _measured(asked, [f"--rate={rates}"], Path(folder) / "open")
    whole = device_of(closed, device)
    # an open loop has no number of clients: its requests spend outside what those of a lone one do
    light = replace(whole, outside=whole.outside[:1])
    rows = [
        *(("closed", row) for row in held_out(closed, device, SEED)),
        *(("open", beside(level, light, SEED)) for level in opened),
    ]
    errors = _print(rows)
    kept = {
        "machine": description.machine(["numpy", "nvidia-pytriton"]),
        "load": round(load, 2),
        "model": asked.model,
        "seconds": asked.seconds,
        "think_ms": THINK_MS,
        "fixed_ms": round(whole.fixed_s * 1e3, 4),
        "service_cv": round(whole.fleet.variation, 4),
        "outside_ms": round(light.outside[0][1] * 1e3, 4),
        "errors": errors,
        "levels": [_row(loop, row) for loop, row in rows],
        "took_s": round(time.monotonic() - began),
    }
    print(description.keep("fleet-held-out", kept))
    return 0


def _measured(
    asked: argparse.Namespace, words: list[str], run: Path
) -> tuple[tuple[MeasuredLevel, ...], Fleet]:
    """The levels of a served scan in a process of its own."""
    command = [sys.executable, "-m", "profharness", "run", "--via=triton", "-o", str(run)]
    command += [f"--model={asked.model}", f"--time={asked.seconds}", "--instances=2"]
    command += ["--max-batch-size=1", *words]
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    if not (run / "manifest.json").exists():
        sys.exit(f"the scan failed:\n{done.stdout}{done.stderr}")
    levels, device, _ = measured_device(run)
    return levels, device


def _print(rows: list[tuple[str, HeldOut]]) -> dict[str, float]:
    """The table, and the median and the largest error of both figures."""
    print("loop    level              requests/s  forecast    off    p99 ms  forecast    off")
    for loop, row in rows:
        p99 = row.p99_forecast_ms
        print(
            f"{loop:<7} {row.level:<18} {row.throughput:>10.1f} "
            f"{row.throughput_forecast.value or 0.0:>9.1f} {100 * row.throughput_error:>+5.1f} % "
            f"{row.p99_ms or float('nan'):>8.2f} "
            f"{(p99.value if p99 else None) or float('nan'):>9.2f} "
            f"{100 * (row.p99_error if row.p99_error is not None else float('nan')):>+5.1f} %"
        )
    errors: dict[str, float] = {}
    for name in ("throughput_error", "p99_error"):
        known = [abs(one) for _, row in rows if (one := getattr(row, name)) is not None]
        if known:
            errors[f"{name}_median"] = round(statistics.median(known), 4)
            errors[f"{name}_largest"] = round(max(known), 4)
        errors[f"{name}_predictions"] = len(known)
    for name, value in errors.items():
        print(f"{name.replace('_', ' '):<30} {value:g}")
    return errors


def _row(loop: str, row: HeldOut) -> dict[str, object]:
    forecast = row.p99_forecast_ms
    return {
        "loop": loop,
        "level": row.level,
        "throughput": round(row.throughput, 2),
        "throughput_forecast": row.throughput_forecast.value,
        "throughput_error": round(row.throughput_error, 4),
        "p99_ms": row.p99_ms,
        "p99_forecast_ms": forecast.value if forecast else None,
        "p99_error": row.p99_error,
    }


if __name__ == "__main__":
    sys.exit(main())

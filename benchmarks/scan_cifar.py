"""What do batch and workers give a real training on this machine? `python benchmarks/scan_cifar.py
[--batch 16,32,64,128] [--workers 0,1,2] [--repeats 3] [--steps 5] [--run RUN]`.

`profharness run train-cifar100` is scanned over both. Printed are the points with their intervals
beside what the others predict of them (each point left out once), what the axes are worth, and the
knee along each. One thread computes, so that executions scatter less where others use the machine;
nothing else should run on it, and `load_average` says how much did. `--run` reads a scan that was
made before. It takes about 15 minutes. Results go to benchmarks/results/scan-cifar-DATE.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import description

ROOT = Path(__file__).resolve().parents[1]
RATE = r"([\d.]+) images/s"


def main() -> int:
    """Scan, print and keep; 1 where the scan failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", default="16,32,64,128")
    parser.add_argument("--workers", default="0,1,2")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, help="a run directory of such a scan")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        run = asked.run or Path(folder) / "scan"
        if asked.run is None:
            _profharness(*_words(asked), "-o", str(run))
        found = json.loads(_profharness("saturation", str(run), "--json"))
    kept = {
        "machine": description.machine(["numpy", "torch", "transformers"]),
        "command": " ".join(_words(asked)),
        "took_s": round(time.monotonic() - began) if asked.run is None else None,
        **{name: found[name] for name in ("unit", "repeats", "noise", "best", "recommended")},
        "left_out_error": found["left_out_error"],
        "left_out_inside": sum(one["inside"] for one in found["left_out"]),
        "points": _points(found),
        "effects": [_effect(one) for one in found["effects"]],
        "curves": [_curve(one) for one in found["series"]],
    }
    _print(kept)
    print(description.keep("scan-cifar", kept))
    return 0


def _words(asked: argparse.Namespace) -> list[str]:
    return [
        *("run", "train-cifar100", "--telemetry", "off", "--rate-regex", RATE),
        *("--scan", f"batch={asked.batch}", "--scan", f"workers={asked.workers}"),
        *("--repeats", str(asked.repeats), "--seed", str(asked.seed)),
        *("--", "--batch-size", "{batch}", "--workers", "{workers}"),
        *("--max-steps", str(asked.steps), "--layers", "1", "--device", "cpu"),
    ]


def _profharness(*words: str) -> str:
    """What a command of this checkout prints; ends this program where it fails."""
    at = words.index("-o") if "-o" in words else len(words)
    # -o belongs before what the command is told
    ordered = (words[0], *words[at:], *words[1:at]) if words[0] == "run" else words
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
    done = subprocess.run(
        [sys.executable, "-m", "profharness", *ordered],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"profharness {words[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def _points(found: dict[str, list[dict[str, object]]]) -> list[dict[str, object]]:
    """Each measured setting with what the others predict of it."""
    rates = {
        (name, level): rate
        for one in found["series"]
        for name, level, rate in zip(one["points"], one["levels"], one["throughput"], strict=True)
    }
    measured = {name: rate for (name, _), rate in rates.items()}
    return [
        {
            "point": one["point"],
            "measured": round(measured[one["point"]], 3),
            "predicted": {
                key: round(one["throughput"][key], 3) for key in ("value", "low", "high")
            },
            "inside": one["inside"],
        }
        for one in found["left_out"]
    ]


def _effect(effect: dict[str, object]) -> dict[str, object]:
    return {key: effect[key] for key in ("axes", "factor", "best", "worst", "proven")}


def _curve(curve: dict[str, object]) -> dict[str, object]:
    return {key: curve[key] for key in ("key", "axis", "levels", "throughput", "knee")}


def _print(kept: dict[str, object]) -> None:
    print(f"{'point':<20} {'measured':>9} {'predicted from the others':>28}  inside")
    for row in kept["points"]:
        guess = row["predicted"]
        print(
            f"{row['point']:<20} {row['measured']:>9.1f} {guess['value']:>9.1f} "
            f"({guess['low']:.1f} to {guess['high']:.1f})".ljust(60)
            + ("yes" if row["inside"] else "no")
        )
    print(
        f"median error {kept['left_out_error']:.1%}, {kept['left_out_inside']} of "
        f"{len(kept['points'])} inside; one execution scatters by {kept['noise'] or 0:.1%}"
    )
    for effect in kept["effects"]:
        factor = effect["factor"]
        print(
            f"{' x '.join(effect['axes']):<20} {factor['value']:.2f} x "
            f"({factor['low'] or 0:.2f} to {factor['high'] or 0:.2f})"
            + ("" if effect["proven"] else ", not proven")
        )
    for curve in kept["curves"]:
        print(f"along {curve['axis']} at {curve['key']}: {curve['throughput']}")


if __name__ == "__main__":
    sys.exit(main())

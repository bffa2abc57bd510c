"""One level from the command line, for looking at a server or at the generator itself; the result
is printed as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
from typing import Any, Dict, Sequence

from profharness_workloads.loadgen.level import read_rows
from profharness_workloads.loadgen.settings import CHOICES
from profharness_workloads.shared import leftovers, worker


def main(argv: Sequence[str]) -> int:
    """Exit status of the worker; the records stay in --output (default: a folder that is
    removed).
    """
    asked = _parser().parse_args(argv)
    with leftovers.temporary_folder("load") as temporary:
        return _run(asked, asked.output or temporary)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="triton_client.py", description=__doc__)
    parser.add_argument("ready", nargs="+", help="server-ready.json of one server or several")
    parser.add_argument("--model", default="")
    for name, choices in CHOICES.items():
        parser.add_argument("--" + name.replace("_", "-"), choices=choices, default=choices[0])
    parser.add_argument("--inputs", default="normal", help="normal, hep or FILE.npz")
    parser.add_argument("--shape", action="append", default=[], metavar="NAME:d1,d2")
    parser.add_argument("--batch-size", type=int, default=1)
    parser.add_argument("--concurrency", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.0, help="requests/s: an open loop")
    parser.add_argument(
        "--arrivals", default="", help="constant, poisson or a file of instants: an open loop"
    )
    parser.add_argument("--think-ms", type=float, default=0.0)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warmup", type=float, default=1.0)
    parser.add_argument("--clients", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=30.0)
    parser.add_argument(
        "--body", default="", help="file to send to a server that does not speak KServe"
    )
    parser.add_argument("--path", default="", help="where to send it")
    parser.add_argument("--output", default="", help="folder for the records")
    return parser


def _run(asked: argparse.Namespace, folder: str) -> int:
    control = os.path.join(folder, "control", "load")
    os.makedirs(control, exist_ok=True)
    spec = {
        name: getattr(asked, name)
        for name in ("model", "inputs", "clients", "body", "path", *CHOICES)
    }
    spec.update(
        backend="load",
        timeout_s=asked.timeout,
        ready=[os.path.abspath(path) for path in asked.ready],
    )
    spec["shapes"] = {
        text.partition(":")[0]: [int(d) for d in text.partition(":")[2].split(",")]
        for text in asked.shape
    }
    params: Dict[str, Any] = {
        "backend": "load",
        "batch_size": asked.batch_size,
        "mode": "open" if asked.rate or asked.arrivals else "closed",
        "concurrency": asked.concurrency,
        "rate": asked.rate,
        "arrivals": asked.arrivals or "constant",
        "think_ms": asked.think_ms,
        "seconds": asked.seconds,
        "warmup_s": asked.warmup,
    }
    _write(os.path.join(control, "client.json"), spec)
    _write(
        os.path.join(control, "points.jsonl"),
        {"v": 1, "kind": "point", "id": "level", "params": params},
        {"v": 1, "kind": "end"},
    )
    from profharness_workloads.loadgen.triton_client import load

    environ = dict(
        os.environ,
        PROFHARNESS_RUN_DIR=folder,
        PROFHARNESS_PASS="load",
        PROFHARNESS_CONTROL_DIR=control,
    )
    status = worker.main(
        load, {**environ, "PROFHARNESS_SPEC": os.path.join(control, "client.json")}
    )
    _show(control, os.path.join(folder, "points", "load", "level"))
    return status


def _write(path: str, *records: Any) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write("".join(json.dumps(record) + "\n" for record in records))


def _show(control: str, point: str) -> None:
    """The result line, with the rate and the latency that follow from the records."""
    import numpy as np

    with open(max(_results(control), key=os.path.getmtime), encoding="utf-8") as file:
        records = [
            record for record in map(json.loads, file) if record["kind"] in ("result", "error")
        ]
    for record in records:
        level = record.get("level")
        if level:
            rows = np.concatenate([read_rows(path) for path in _records(point)])
            inside = (
                (rows[:, 3] > level["window_start_ns"])
                & (rows[:, 3] <= level["window_end_ns"])
                & (rows[:, 5] == 0)
            )
            seconds = (level["window_end_ns"] - level["window_start_ns"]) / 1e9
            latency = (rows[inside, 3] - rows[inside, 2]) / 1e6
            record["seen"] = {
                "requests_per_s": round(int(inside.sum()) / seconds, 2),
                "latency_ms": dict(
                    zip(("mean", "p50", "p99"), [round(float(x), 3) for x in _three(latency)])
                ),
                "cpu_us_per_request": round(level["cpu_ns"] / 1e3 / max(1, int(inside.sum())), 1),
            }
        print(json.dumps(record, indent=1))


def _three(values: Any) -> Sequence[float]:
    import numpy as np

    return [values.mean(), *np.percentile(values, [50, 99])] if len(values) else [0.0, 0.0, 0.0]


def _results(control: str) -> Sequence[str]:
    return [
        os.path.join(control, name) for name in os.listdir(control) if name.startswith("results-")
    ]


def _records(point: str) -> Sequence[str]:
    return [
        os.path.join(point, name)
        for name in sorted(os.listdir(point))
        if name.startswith("requests-")
    ]

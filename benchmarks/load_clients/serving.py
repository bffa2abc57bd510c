"""The server that all clients are compared on, and how programs are started on their cores."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "wrappers" / "profharness_workloads"
SEED = 1
STARTS_WITHIN_S = 60.0


def environ(folder: Path, spec: Path) -> dict[str, str]:
    """What the harness tells a worker: where its run is and where its settings stand."""
    return {
        **os.environ,
        "PROFHARNESS_RUN_DIR": str(folder),
        "PROFHARNESS_CONTROL_DIR": str(spec.parent),
        "PROFHARNESS_PASS": "bare",
        "OMP_NUM_THREADS": "1",
        "PROFHARNESS_SPEC": str(spec),
        "PROFHARNESS_PARENT_PID": str(os.getpid()),
        "PROFHARNESS_WORKER": "1",
        "PROFHARNESS_LAYERS": "",
    }


def halves(shared: bool) -> tuple[set[int], set[int]]:
    """The cores of the server and those of the clients."""
    cores = sorted(os.sched_getaffinity(0))
    if shared or len(cores) < 2:
        return set(cores), set(cores)
    return set(cores[: len(cores) // 2]), set(cores[len(cores) // 2 :])


def start(
    argv: Sequence[str], env: Mapping[str, str], output: IO[bytes] | int, cores: set[int]
) -> subprocess.Popen[bytes]:
    """A program that is on these cores from its first instruction on."""
    return subprocess.Popen(
        ["taskset", "-c", ",".join(map(str, sorted(cores))), *argv],
        env=dict(env),
        stdout=output,
        stderr=subprocess.STDOUT,
    )


@contextmanager
def server(folder: Path, model: str, max_batch_size: int, cores: set[int]) -> Iterator[Path]:
    """A PyTriton server of one model; its description. Ends the program when it does not start."""
    control = folder / "server"
    control.mkdir(parents=True)
    spec = control / "server.json"
    spec.write_text(
        json.dumps(
            {
                "backend": "torch",
                "model": model,
                "name": "model",
                "device": "cpu",
                "instances": 1,
                "max_batch_size": max_batch_size,
                "queue_delay_us": 0,
                "threads": 1,
                "seed": SEED,
                "records": False,
            }
        )
    )
    program = [sys.executable, str(WORKLOADS / "serving" / "triton_server.py")]
    log = folder / "server.log"
    with log.open("wb") as output:
        process = start(program, environ(folder, spec), output, cores)
    ready = control / "server-ready.json"
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the server did not start:\n{log.read_text()[-2000:]}")
            time.sleep(0.05)
        yield ready
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()

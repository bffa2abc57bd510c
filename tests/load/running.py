"""Levels run for tests: a stand-in server, the client worker as the harness starts it, and what
both left.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.rundir import requests_raw
from profharness.rundir.levels import Level
from profharness.rundir.requests_raw import RawLevel
from profharness.stats.load import level_figures
from profharness.stats.load_figures import LevelFigures
from profharness.workers.protocol import Line

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / "wrappers" / "profharness_workloads" / "loadgen" / "triton_client.py"
SERVER = ROOT / "tests" / "fakes" / "stand_in_kserve.py"
STARTS_WITHIN_S = 120.0


@dataclass(frozen=True)
class Served:
    """A stand-in server that runs."""

    ready: Path
    process: subprocess.Popen[bytes]

    @property
    def description(self) -> dict[str, object]:
        return dict(json.loads(self.ready.read_text()))

    def seen(self) -> dict[str, object]:
        with urllib.request.urlopen(
            f"http://{self.description['http']}/seen", timeout=60
        ) as answer:
            return dict(json.loads(answer.read()))


@contextmanager
def server(
    folder: Path, prefix: tuple[str, ...] = (), name: str = "server", **settings: object
) -> Iterator[Served]:
    """The stand-in server, under a command prefix if given; ended at the end."""
    ready = folder / f"{name}-ready.json"
    process = subprocess.Popen(
        [*prefix, sys.executable, str(SERVER), str(ready), json.dumps(settings)],
        stdin=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while not ready.exists():
            assert process.poll() is None, "the stand-in server ended"
            assert time.monotonic() < deadline, "the stand-in server did not start"
            time.sleep(0.02)
        yield Served(ready, process)
    finally:
        process.kill()
        process.wait()


@dataclass(frozen=True)
class Outcome:
    """What the worker said of its points, and where it left their records."""

    lines: tuple[Line, ...]
    folder: Path
    status: int
    log: str

    @property
    def result(self) -> Line:
        (one,) = [line for line in self.lines if line.kind == "result"]
        return one

    @property
    def level(self) -> Level:
        assert self.result.level is not None, self.result.error
        return self.result.level

    def raw(self) -> RawLevel:
        return requests_raw.read_level(self.folder / "points" / "bare" / self.result.id)

    def figures(self) -> LevelFigures:
        return level_figures(requests_raw.to_requests(self.raw()), self.level)


CONTROL = "control/bare/t"


def prepare(
    folder: Path,
    ready: object,
    params: list[dict[str, object]],
    where: str = CONTROL,
    key: str = "level",
    **spec: object,
) -> dict[str, str]:
    """The control folder of one worker, `where` under the run; the environment that the harness
    would give it.
    """
    control = folder / where
    control.mkdir(parents=True, exist_ok=True)
    (control / "client.json").write_text(
        json.dumps({"ready": ready, "backend": "t", "model": "", "shapes": {"x": [16]}, **spec})
    )
    with (control / "points.jsonl").open("w") as file:
        for at, one in enumerate(params):
            point = {
                "v": 1,
                "kind": "point",
                "id": key if len(params) == 1 else f"{key}-{at}",
                "params": {"backend": "t", "batch_size": 1, **one},
            }
            file.write(json.dumps(point) + "\n")
        file.write('{"v": 1, "kind": "end"}\n')
    return {
        **os.environ,
        "PROFHARNESS_RUN_DIR": str(folder),
        "PROFHARNESS_CONTROL_DIR": str(control),
        "PROFHARNESS_PASS": "bare",
        "PROFHARNESS_SPEC": str(control / "client.json"),
        "PROFHARNESS_PARENT_PID": str(os.getpid()),
        "PROFHARNESS_WORKER": "1",
    }


def outcome(folder: Path, status: int, log: str, where: str = CONTROL) -> Outcome:
    lines = []
    for path in sorted((folder / where).glob("results-*.jsonl")):
        lines += [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]
    return Outcome(tuple(lines), folder, status, log)


def level(
    folder: Path,
    ready: object,
    *,
    worker: Path = CLIENT,
    where: str = CONTROL,
    env: dict[str, str] | None = None,
    spec: dict[str, object] | None = None,
    key: str = "level",
    **params: object,
) -> Outcome:
    """One level by the client worker. `ready` is a path or a list of them; `key` names the
    point.
    """
    paths = [str(one) for one in ready] if isinstance(ready, list) else str(ready)
    environ = prepare(
        folder, paths, [{"seconds": 1.0, "warmup_s": 0.3, **params}], where, key, **(spec or {})
    )
    done = subprocess.run(
        [sys.executable, str(worker)],
        env={**environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return outcome(folder, done.returncode, done.stdout + done.stderr, where)

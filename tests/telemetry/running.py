"""Starts the real sampler process for a test, and always ends it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parent.parent.parent


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 90.0) -> Any:
    """The condition's value once it holds; fails the test when it never does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError(f"waited {seconds:g} s in vain for {what}")


class Sampler:
    """A sampler that samples into `folder` (host name `node`); as a context manager it is killed at
    the end.
    """

    def __init__(
        self,
        folder: Path,
        *,
        hz: float = 50.0,
        sources: tuple[str, ...] = ("cpu",),
        parent_pid: int | None = None,
        sysfs: str = "/sys",
        counters_hz: float = 20.0,
        counting_gate: str = "",
        exporter: str = "",
        **popen: Any,
    ) -> None:
        self.folder = folder
        self.roots = folder / "roots"
        self.spec = folder / "spec.json"
        self.spec.write_text(
            json.dumps(
                {
                    "output_dir": str(folder),
                    "host": "node",
                    "hz": hz,
                    "roots_file": str(self.roots),
                    "sources": list(sources),
                    "sysfs": sysfs,
                    "counters_hz": counters_hz,
                    "counting_gate": counting_gate,
                    "exporter": exporter,
                    "parent_pid": os.getpid() if parent_pid is None else parent_pid,
                }
            )
        )
        self.process = subprocess.Popen(command(self.spec), cwd=ROOT, **popen)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def file(self, suffix: str) -> Path:
        return self.folder / f"node.{suffix}"

    def ready(self) -> dict[str, Any]:
        wait_for(
            lambda: self.file("ready.json").exists() or self.process.poll() is not None,
            "the ready file",
        )
        return json.loads(self.file("ready.json").read_text())

    def follow(self, pid: int) -> None:
        with self.roots.open("a") as file:
            file.write(f"{pid}\n")

    def stop(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(90) == 0
        return json.loads(self.file("done.json").read_text())


def command(spec: Path) -> list[str]:
    return [sys.executable, "-m", "profharness.telemetry", "--spec", str(spec)]

"""Scans of seconds for faults to strike: real harness, sampler and worker, a stand-in for torch, for
a tracer and for a model server; and what must hold once the fault is over.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from profharness.errors import InputError
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.rundir.paths import RunDir
from profharness.scans.contract import key_of
from tests.fakes.stand_in_node import SITE, TORCH
from tests.fakes.stand_in_tools import install
from tests.faults.outcome import Outcome
from tests.processes import command_of, gone

ROOT = Path(__file__).resolve().parents[2]
FAKES = ROOT / "tests" / "fakes"
GONE_S = 5.0
_PATIENCE_S = 120.0
_LOOK_S = 0.005
# a shell that swallows signals and stays around the workload, as the wrapper scripts of tools do
_AROUND = {
    False: 'exec {python} "$@"\n',
    True: 'trap : TERM INT\n{python} "$@" &\nwait $!\nwait $!\n',
}


@dataclass(frozen=True)
class Scan:
    """One scan in `folder`: of a served model, under a tracer (`tool`), or with an interpreter that
    is a script around the real one (`wrapped`).
    """

    folder: Path
    served: bool = False
    tool: bool = False
    wrapped: bool = False
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        """The run's directory."""
        return self.folder / "run"

    def start(self, *words: str) -> Started:
        """`profharness run` with the words of this scan, or with `words`."""
        runner = FAKES / "stand_in_run.py"
        program = [str(runner)] if self.served else ["-m", "profharness"]
        log = (self.folder / "said").open("ab")
        process = subprocess.Popen(
            [sys.executable, *program, "run", *(words or self._words()), "--quiet", "-o", "run"],
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            process_group=0,
        )
        log.close()
        return Started(self, process)

    def said(self) -> str:
        """What all processes of this scan printed so far."""
        return (self.folder / "said").read_text(errors="replace")

    def _words(self) -> tuple[str, ...]:
        if self.served:
            return (
                *("--model", "sleep:5ms", "--via", "triton", "--concurrency", "1,2,3,4,5,6"),
                *("--time", "5", "--telemetry", "cpu"),
            )
        model, python = self.folder / "model.pt", self.folder / "python"
        model.touch()
        python.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{TORCH}:{SITE}${{PYTHONPATH:+:$PYTHONPATH}}"\n'
            + _AROUND[self.wrapped].format(python=sys.executable)
        )
        python.chmod(0o755)
        return (
            *("--model", str(model), "--shape", "x:4", "--flops-per-item", "1"),
            *("--python", str(python), "--device", "cpu", "--batch-sizes", "1,2,3,4,5,6"),
            *("--trials", "300", "--min-seconds", "0", "--warmup", "0", "--telemetry", "cpu"),
            *(("--profile", "rocprof", "--profile-trials", "1") if self.tool else ()),
        )

    def _environment(self) -> dict[str, str]:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PROFHARNESS", "STAND_IN", "SLURM", "ROCM"))
        }
        tools = f"{self.folder / 'rocm-5.7.1' / 'bin'}:" if self.tool else ""
        if self.tool and not (self.folder / "rocm-5.7.1").exists():
            install(self.folder, "5.7", ("rocprof",))
        return {
            **clean,
            "PATH": f"{tools}{os.environ['PATH']}",
            "OMP_NUM_THREADS": "1",
            "STAND_IN": json.dumps({"slow_s": 0.2}),
            "STAND_IN_OPERATORS": "200",
            "PROFHARNESS_CACHE": str(self.folder / "cache"),
            **self.env,
        }


@dataclass
class Started:
    """A scan that runs."""

    scan: Scan
    process: subprocess.Popen[bytes]

    def wait_for(self, condition: Callable[[], object]) -> bool:
        """Whether the condition held before the scan ended."""
        end = time.monotonic() + _PATIENCE_S
        while time.monotonic() < end and self.process.poll() is None:
            if condition():
                return True
            time.sleep(_LOOK_S)
        return False

    def ours(self) -> list[int]:
        """The living processes that the harness started for itself: sampler, workers, servers,
        load generators and what stands around them.
        """
        return sorted({*self.marked(), *self.sampler()})

    def marked(self) -> list[int]:
        """Those that carry the harness's number, with their descendants."""
        mark = f"PROFHARNESS_PARENT_PID={self.process.pid}".encode()
        return [pid for pid in _living() if mark in _environment_of(pid)]

    def sampler(self) -> list[int]:
        """The sampler of this run's folder."""
        spec = os.fsencode(self.scan.root / "telemetry")
        return [
            pid
            for pid in _living()
            if b"profharness.telemetry" in (line := command_of(pid)) and spec in line
        ]

    def with_words(self, word: str) -> list[int]:
        """Those of the marked processes that have the word in their command line."""
        return [pid for pid in self.marked() if os.fsencode(word) in command_of(pid)]

    def ended(self, within_s: float) -> bool:
        """Whether the harness ends in time; it is killed where it does not."""
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


@dataclass(frozen=True)
class Kept:
    """The finished points of a run, with the bytes of what was measured in each."""

    points: Mapping[tuple[str, str], tuple[PointRecord, bytes]]

    @classmethod
    def of(cls, root: Path) -> Kept:
        """As the manifest names them now."""
        try:
            manifest = RunDir.open(root).read_manifest()
        except InputError:
            return cls({})
        return cls(
            {
                (record.pass_name, key_of(record)): (record, _figures(root, record))
                for record in manifest.points
                if record.state == "ok"
            }
        )


def judged(started: Started, before: Kept, *faults: str, left_s: float = GONE_S) -> Outcome:
    """What came of a fault that struck a live victim, when `before` was finished: nothing of ours
    may live on, the run must be resumed to its end, and `report` must work on it.
    """
    scan, found = started.scan, list(faults)
    lives = _outlives(started, left_s)
    found += [f"{len(lives)} processes live {left_s:g} s later: {lives[:3]}"] if lives else []
    if scan.root.exists():
        found += _goes_on(scan)
    said = scan.said()
    found += [f"somebody said {word!r}" for word in ("Traceback", "itself failed") if word in said]
    after = Kept.of(scan.root)
    lost = [key for key in before.points if key not in after.points]
    differing = [key for key, kept in before.points.items() if after.points.get(key, kept) != kept]
    return Outcome(True, len(lost), len(differing), tuple(found))


def _goes_on(scan: Scan) -> list[str]:
    """Resume the run and report on it; what went wrong."""
    found: list[str] = []
    again = scan.start("--resume")
    if not again.ended(_PATIENCE_S):
        found.append("--resume did not end")
    elif again.process.returncode not in (0, 1):
        found.append(f"--resume ended with {again.process.returncode}: {scan.said()[-300:]}")
    manifest: Manifest | None = None
    try:
        manifest = RunDir.open(scan.root).read_manifest()
    except InputError as error:
        found.append(error.message)
    if manifest is not None and manifest.state != "done":
        found.append(f"the resumed run is {manifest.state}")
    done = subprocess.run(
        [sys.executable, "-m", "profharness", "report", "run", "--json"],
        cwd=scan.folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    if done.returncode != 0:
        found.append(f"report ended with {done.returncode}: {done.stderr[-300:]}")
    return found


def _outlives(started: Started, left_s: float) -> list[str]:
    """Processes of ours that live longer than `left_s` after the end of the harness."""
    end = time.monotonic() + left_s
    while (left := started.ours()) and time.monotonic() < end:
        time.sleep(0.05)
    words = [command_of(pid).replace(b"\0", b" ").decode(errors="replace")[:120] for pid in left]
    for pid in left:
        if not gone(pid):
            os.kill(pid, 9)
    return words


def at_random(started: Started, random: Random, longest_s: float) -> bool:
    """Let a random time pass once the manifest is there; whether the harness still runs."""
    if not started.wait_for((started.scan.root / "manifest.json").exists):
        return False
    end = time.monotonic() + random.uniform(0, longest_s)
    started.wait_for(lambda: time.monotonic() > end)
    return started.process.poll() is None


def too_late(started: Started) -> Outcome:
    """The outcome of a try whose victim had ended."""
    started.ended(_PATIENCE_S)
    return Outcome(hit=False)


def _figures(root: Path, record: PointRecord) -> bytes:
    folder = root / "points" / record.pass_name / key_of(record)
    return b"".join(path.read_bytes() for path in sorted(folder.glob("trials*.csv")))


def _living() -> list[int]:
    names = [entry.name for entry in Path("/proc").iterdir()]
    return [int(name) for name in names if name.isdigit() and not gone(name)]


def _environment_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []

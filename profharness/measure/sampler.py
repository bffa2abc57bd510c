"""The node's telemetry sampler during a run: starts it, tells it which processes to follow, notices
its death.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from profharness.findings import Finding, finding
from profharness.launchers.sidecar import Sidecar
from profharness.layers.device_counters import NAME as COUNTING
from profharness.layers.telemetry import (
    UNNAMED,
    Beside,
    Counting,
    Ready,
    let_rest,
    sampler_command,
    spec_json,
)
from profharness.measure.recorder import Recorder
from profharness.options.request import Request
from profharness.rundir.lost import LostFile
from profharness.rundir.paths import RunDir
from profharness.rundir.series.present import Present
from profharness.rundir.telemetry_files import SAMPLES
from profharness.telemetry.files import unwritten

COUNTING_S = 45.0  # the library may take long to start on a node with many devices
ENDING_S = 5.0  # beside what the sampler needs to notice it


class _Told(msgspec.Struct, frozen=True):
    """What the sampler says when the counting has begun, or will not."""

    why: str = ""


class Sampler:
    """A context around all passes of a run. Without a recorder (ranks that do not lead) findings
    are kept only. It sets the power caps of `caps_file` again when it ends.
    """

    def __init__(
        self,
        run: RunDir,
        request: Request,
        host: str,
        recorder: Recorder | None,
        caps_file: str = "",
    ) -> None:
        self._caps_file = caps_file
        self._present: Present | None = None
        self._folder = run.telemetry
        self._request = request
        self._host = host
        self._recorder = recorder
        self._sidecar: Sidecar | None = None
        self._reported = self._told_to_end = False
        self._gate = self._folder / f"{host}.counting"
        self._told = self._folder / f"{host}.counting.ready"
        self._counts = COUNTING in request.profile

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        spec = self._folder / f"{self._host}.spec.json"
        request = self._request
        for left in (self._gate, self._told):  # by a run that is taken up again
            left.unlink(missing_ok=True)
        counting = Counting(request.device_counters_hz, self._gate) if self._counts else None
        spec.write_bytes(
            spec_json(
                self._folder,
                self._host,
                request.telemetry,
                request.telemetry_hz,
                Beside(counting, request.device_counters_from, self._caps_file),
            )
        )
        (self._folder / f"{self._host}.roots").touch()
        self._sidecar = Sidecar(sampler_command(spec), self._folder / f"{self._host}.log")
        if not self._sidecar.wait_ready(self._folder / f"{self._host}.ready.json"):
            self._died("did not start")
        else:
            self._check_sources()
            self._rest()
        return self

    def _check_sources(self) -> None:
        """A source that was asked for by name and gives nothing is a finding. For amdsmi the
        samples say so, and what replaced it.
        """
        if self._request.telemetry in (*UNNAMED, "amdsmi"):
            return
        ready = msgspec.json.decode(
            (self._folder / f"{self._host}.ready.json").read_bytes(), type=Ready
        )
        if why := ready.why_missing(self._request.telemetry):
            self.add_finding(
                finding(
                    "sampler-gaps",
                    f"--telemetry {self._request.telemetry} gives nothing on {self._host}: {why}",
                )
            )

    def _rest(self) -> None:
        if self._request.idle_seconds:
            let_rest(self._folder, self._host, self._request.idle_seconds)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sidecar is None:
            return
        self.check()
        status = self._sidecar.stop()
        with self._losing(self._gate):
            self._gate.unlink(missing_ok=True)
            self._told.unlink(missing_ok=True)
        if self._told_to_end and error is None and not self._was_stopped():
            self._died("was told to end before the run did")
        elif status != 0 and not self._reported:
            self._died(f"ended with status {status}")

    def _was_stopped(self) -> bool:
        """Whether a signal ended the run: a batch system gives it to all processes of a job."""
        records = () if self._recorder is None else self._recorder.manifest.passes
        return any(record.state == "interrupted" for record in records)

    def follow(self, pid: int) -> None:
        """Sample the process tree below `pid` from now on."""
        path = self._folder / f"{self._host}.roots"
        with self._losing(path), path.open("a") as file:
            file.write(f"{pid}\n")

    @contextmanager
    def _losing(self, path: Path) -> Iterator[None]:
        """A folder that takes no more is told at the end of the run, and ends nothing."""
        try:
            yield
        except OSError as error:
            if self._recorder is not None:
                self._recorder.lose(LostFile.of(path, error))

    def count(self, layers: Sequence[str]) -> None:
        """A pass with these layers begins: count on the devices during it, or not.

        Waits until the counting has begun, or is known not to, so that it is no part of the
        workload's time; or until it has ended, so that a pass that counts finds the devices free.
        What speaks against it is a finding.
        """
        if not self._counts or self._sidecar is None:
            return
        if COUNTING not in layers:
            self._gate.unlink(missing_ok=True)
            end = time.monotonic() + ENDING_S + 2 / self._request.telemetry_hz
            while self._told.exists() and self.alive() and time.monotonic() < end:
                time.sleep(0.01)
            return
        self._gate.touch()
        why = self._why_not_counting()
        if why:
            self.add_finding(
                finding(
                    "device-counters-hidden",
                    f"no hardware counter of {self._host} was read: {why}",
                )
            )

    def _why_not_counting(self) -> str:
        """Empty once the counting has begun."""
        ready = msgspec.json.decode(
            (self._folder / f"{self._host}.ready.json").read_bytes(), type=Ready
        )
        if why := ready.why_missing(COUNTING):
            return why
        end = time.monotonic() + COUNTING_S
        while not self._told.exists():
            if time.monotonic() > end or not self.alive():
                return f"it did not begin within {COUNTING_S:g} s"
            time.sleep(0.01)
        return msgspec.json.decode(self._told.read_bytes(), type=_Told).why

    def present(self) -> str:
        """What the devices and the workload did since the last call, in a few words."""
        if self._present is None:
            self._present = Present(self._folder / f"{self._host}{SAMPLES}")
        return self._present.words()

    def alive(self) -> bool:
        """Whether the sampler runs."""
        return self._sidecar is not None and self._sidecar.alive()

    def check(self) -> None:
        """Report a dead sampler once."""
        if self._sidecar is None or self._reported or self._sidecar.alive():
            return
        if self._sidecar.status() == 0:
            self._told_to_end = True
        else:
            self._died("died")

    def add_finding(self, finding: Finding) -> None:
        """Record a finding about this node, where this rank owns the manifest."""
        if self._recorder is not None:
            self._recorder.add_finding(finding)

    def _died(self, how: str) -> None:
        self._reported = True
        why = "" if self._sidecar is None else unwritten(self._sidecar.status() or 0)
        if why:
            samples = self._folder / f"{self._host}.samples.bin"
            if self._recorder is not None:
                self._recorder.lose(LostFile(str(samples), why))
            return
        words = self._sidecar.last_words() if self._sidecar is not None else ""
        self.add_finding(
            finding(
                "sampler-gaps",
                f"the telemetry sampler on {self._host} {how}: {words}",
                severity="error",
            )
        )

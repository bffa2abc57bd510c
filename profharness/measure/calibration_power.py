"""Power beside a calibration: of the package at rest, and while its fastest matrix product is held;
and what else was going on meanwhile; by the telemetry sampler.

Where nothing on this node tells power, the calibration goes on without it and says why.
"""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from profharness.launchers.sidecar import Sidecar
from profharness.layers.telemetry import sampler_command, spec_json
from profharness.node.ceilings import Calibration
from profharness.rundir import clock_files, telemetry
from profharness.stats import calibration_watch
from profharness.stats.energy import too_short
from profharness.stats.intervals import Intervals, window
from profharness.stats.packages import CPU, Package, packages
from profharness.stats.streams import Stream, streams

HZ = 50.0
REST_S = 3.0
LEAST_S = 5.0  # of the held product: most sensors give twenty new values in that
_POWER = frozenset(
    {
        "power_w",
        "power_average",
        "power_energy",
        "power_module",
        "power_module_energy",
        "power_cpu",
        "power_cpu_energy",
    }
)


class Held(msgspec.Struct, frozen=True):
    """When the product was held, CLOCK_BOOTTIME ns, and its type."""

    type: str
    start_ns: int
    end_ns: int


class Ran(msgspec.Struct, frozen=True):
    """When the figures were measured, CLOCK_BOOTTIME ns, and the CPU time that this took."""

    start_ns: int
    end_ns: int
    cpu_s: float


class PowerWatch:
    """A context around a calibration: samples meanwhile where there is a source of power."""

    def __init__(self) -> None:
        self._place = tempfile.TemporaryDirectory(prefix="profharness-power-")
        self._folder = Path(self._place.name)
        self._host = socket.gethostname()
        self._sampler: Sidecar | None = None
        self._rest = window(0, 0)
        self._why_not = ""
        self._started = False

    def __enter__(self) -> Self:
        spec = self._file("spec.json")
        spec.write_bytes(spec_json(self._folder, self._host, "auto", HZ))
        self._file("roots").touch()
        self._sampler = Sidecar(sampler_command(spec), self._file("log"))
        if not self._sampler.wait_ready(self._file("ready.json")):
            self._why_not = f"the telemetry sampler did not start: {self._sampler.last_words()}"
        else:
            self._started = True
            self._why_not = _why_not(json.loads(self._file("ready.json").read_bytes()))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._sampler is not None:
            self._sampler.stop()
        if error is not None:
            self._place.cleanup()

    def rest(self) -> None:
        """Let the device rest, before anything runs on it."""
        if not self._why_not:
            start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            time.sleep(REST_S)
            self._rest = window(start, time.clock_gettime_ns(time.CLOCK_BOOTTIME))

    def seconds(self, asked: float) -> float:
        """For how long the product is to be held; 0 where nobody measures."""
        return 0.0 if self._why_not else max(LEAST_S, 3 * asked)

    def completed(
        self,
        calibration: Calibration,
        held: Held | None,
        identities: Sequence[str],
        ran: Ran | None = None,
    ) -> Calibration:
        """The calibration with what else was going on while it `ran`, and with its power, or with a
        note on why it has none. Call it after the context.
        """
        try:
            return self._completed(self._judged(calibration, ran, identities), held, identities)
        finally:
            self._place.cleanup()

    def _judged(
        self, calibration: Calibration, ran: Ran | None, identities: Sequence[str]
    ) -> Calibration:
        """By what the sampler saw while the figures were measured; by their rounds alone where it
        did not start.
        """
        if ran is None or ran.end_ns <= ran.start_ns or not self._started:
            return calibration_watch.judged(calibration, {})
        every, offset = self._samples()
        span = window(ran.start_ns - offset, ran.end_ns - offset)
        own = ran.cpu_s * 1e9 / span.total
        on_cpu = calibration.kind == "cpu"
        seen = calibration_watch.watched(every, span, own, identities, on_cpu=on_cpu)
        return calibration_watch.judged(calibration, seen)

    def _completed(
        self, calibration: Calibration, held: Held | None, identities: Sequence[str]
    ) -> Calibration:
        if self._why_not or held is None:
            return _noted(calibration, self._why_not or "no product was held")
        every, offset = self._samples()
        rest, work = (
            Intervals(span.start - offset, span.end - offset)
            for span in (self._rest, window(held.start_ns, held.end_ns))
        )
        package = _package(
            every, packages(every, rest), identities, on_cpu=calibration.kind == "cpu"
        )
        if package is None:
            return _noted(calibration, "no package reports power for this device")
        if needs := too_short(work, package.period_ns):
            return _noted(
                calibration,
                f"its sensor needs the product to be held for {needs.rpartition(' ')[2]} s: "
                "raise --seconds",
            )
        energy = package.energy(work)
        if energy is None:
            return _noted(calibration, "power samples do not cover the held product")
        return msgspec.structs.replace(
            calibration,
            gemm_power_w=energy.watts,
            idle_power_w=package.idle_w,
            power_scope=f"{package.scope}, {held.type}",
        )

    def _samples(self) -> tuple[tuple[Stream, ...], int]:
        """What was sampled, and CLOCK_BOOTTIME less the samples' clock."""
        reading = clock_files.read_clocks(self._file("clocks.jsonl"))[0]
        return streams(
            telemetry.read(self._file("samples.bin"))
        ), reading.boot_ns - reading.monotonic_ns

    def _file(self, suffix: str) -> Path:
        return self._folder / f"{self._host}.{suffix}"


def _why_not(ready: dict[str, list[dict[str, object]]]) -> str:
    """Why there is no source of power; empty where there is one."""
    metrics = {
        str(metric).partition(":")[0]
        for source in ready["sources"]
        for metric in source["metrics"]  # type: ignore[attr-defined]  # a list of names
    }
    if metrics & _POWER:
        return ""
    reasons = {str(absent["metric"]): str(absent["why"]) for absent in ready["missing"]}
    return (
        "; ".join(reasons[name] for name in ("gpu", "power_cpu") if name in reasons)
        or "nothing on this node tells power"
    )


def _package(
    every: Sequence[Stream],
    candidates: Sequence[Package],
    identities: Sequence[str],
    *,
    on_cpu: bool,
) -> Package | None:
    """The package that the device belongs to; the CPUs for a CPU."""
    if on_cpu:
        return next((package for package in candidates if package.scope == CPU), None)
    owners = {
        stream.package
        for stream in every
        if stream.identity in identities or stream.identity.partition("/")[0] in identities
    }
    of_device = [package for package in candidates if package.identity in owners]
    return (
        of_device[0]
        if of_device
        else candidates[0]
        if len(candidates) == 1 and candidates[0].scope != CPU and not identities
        else None
    )


def _noted(calibration: Calibration, why: str) -> Calibration:
    return msgspec.structs.replace(calibration, notes=(*calibration.notes, f"power: {why}"))

"""What becomes of each point's output in one pass of a scan: its trials, its record, its progress,
and a finding if it failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import msgspec

from profharness.errors import InputError
from profharness.findings import finding
from profharness.layers.contract import COMMAND
from profharness.measure.progress import Beside, Progress
from profharness.measure.recorder import Recorder
from profharness.rundir import requests_raw, stream_times
from profharness.rundir.lost import LostFile
from profharness.scans.contract import Point, PointOutput, Scan
from profharness.stats.level_result import level_result
from profharness.units import of_cores, several

_UNITS = {"items": "items/s", "steps": "steps/s", "runs": "runs/s", "figures": "units/s"}


@dataclass(frozen=True)
class Around:
    """What progress tells beside a point: the `order` of those that are known, and `telemetry`."""

    order: Sequence[Point] = ()
    telemetry: Callable[[], str] = str


NOTHING_AROUND = Around()


class PointResults:
    """Takes the outputs of one pass in their order."""

    def __init__(
        self,
        scan: Scan,
        pass_name: str,
        recorder: Recorder,
        progress: Progress,
        around: Around = NOTHING_AROUND,
    ) -> None:
        self._around = around
        self._following = {
            one.key: then for one, then in zip(around.order, around.order[1:], strict=False)
        }
        self._scan = scan
        self._pass = pass_name
        self._recorder = recorder
        self._progress = progress
        self._done = 0
        self._failed: set[str] = set()
        self._reasons: set[str] = set()

    def take(self, point: Point, measured: PointOutput) -> None:
        """Record one point. A failure with the same reason as an earlier one is a finding only
        once.
        """
        if measured.streams:
            measured = self._with_stream_trials(point, measured)
        elif point.mode is None:
            measured = self._with_trials(point, measured)
        elif measured.ok:
            measured = self._with_level_result(point, measured)
        self._recorder.add_point(self._scan.result(point, self._pass, measured))
        if not measured.ok:
            self._add_failure(point, measured)
        self._done += 1
        self._progress.point_done(
            self._pass, _label(point), self._done, self._beside(point, measured)
        )

    def _beside(self, point: Point, measured: PointOutput) -> Beside:
        """The rate of the point, as the report will have it but for several processes, and what
        comes next.
        """
        unit = f"{several(self._scan.item)}/s"
        if measured.execution is not None:
            unit = _UNITS[measured.execution.unit]
        following = self._following.get(point.key)
        return Beside(
            _rate(measured) if measured.ok else None,
            unit,
            "" if following is None else _label(following),
            self._around.telemetry,
        )

    def _with_trials(self, point: Point, measured: PointOutput) -> PointOutput:
        """The point failed where its trials cannot be written: without them it has no figures."""
        try:
            self._recorder.write_trials(self._pass, point.key, _trial_rows(measured))
        except OSError as error:
            return self._unwritten(point, measured, error)
        return measured

    def _unwritten(self, point: Point, measured: PointOutput, error: OSError) -> PointOutput:
        folder = self._recorder.run.point_path(self._pass, point.key)
        self._recorder.lose(LostFile.of(folder, error))
        why = f"its results could not be written ({error.strerror})"
        return replace(measured, ok=False, error=measured.error or why)

    def _with_stream_trials(self, point: Point, measured: PointOutput) -> PointOutput:
        """The batches of each process as trials of its own; the point failed where a file does not
        hold as many batches as the worker reported, or where a process was too slow to be measured
        in the window.
        """
        folder = self._recorder.run.point_path(self._pass, point.key)
        try:
            for stream in measured.streams:
                starts, durations = stream_times.read(folder / stream.file, stream.batches)
                rows = [
                    (number, "trial", start, duration, measured.items)
                    for number, (start, duration) in enumerate(zip(starts, durations, strict=True))
                ]
                self._recorder.write_trials(self._pass, point.key, rows, process=stream.index)
                (folder / stream.file).unlink()
        except InputError as error:
            return replace(measured, ok=False, error=error.message)
        except OSError as error:
            return self._unwritten(point, measured, error)
        idle = [stream.index for stream in measured.streams if not stream.batches]
        if measured.ok and idle:
            who = (
                "no process ended a"
                if len(idle) == len(measured.streams)
                else f"process {', '.join(map(str, idle))} ended no"
            )
            return replace(
                measured,
                ok=False,
                error=(
                    f"{who} batch within the measured window: raise --time, or take a smaller batch"
                ),
            )
        return measured

    def _with_level_result(self, point: Point, measured: PointOutput) -> PointOutput:
        """A level's output with the result of its requests; the point failed where they give
        none.
        """
        if measured.level is None:
            return replace(measured, ok=False, error="the load generator reported no window")
        try:
            requests = requests_raw.to_requests(
                requests_raw.read_level(self._recorder.run.point_path(self._pass, point.key))
            )
        except InputError as error:
            return replace(measured, ok=False, error=error.message)
        return replace(measured, result=level_result(requests, measured.level))

    def _add_failure(self, point: Point, measured: PointOutput) -> None:
        reported = point.id in self._failed or (
            not measured.begun and measured.error in self._reasons
        )
        self._failed.add(point.id)
        self._reasons.add(measured.error)
        if reported:
            return
        again = ", when it was measured again" if point.repeat else ""
        failure = (
            f"{point.id} failed in the {self._pass} pass{again}"
            if measured.begun
            else f"no point from {point.id} on was measured in the {self._pass} pass"
        )
        told = finding("point-failed", f"{failure}: {measured.error}", point=point.id)
        if self._scan.backends == (COMMAND,):
            logs = f"points/{self._pass}/{point.key}"
            told = msgspec.structs.replace(told, advice=f"see what it said, in {logs} of the run")
        self._recorder.add_finding(told)


def _label(point: Point) -> str:
    """As people call it: `batch 256`, `concurrency 8`, or its id."""
    again = " again" if point.repeat else ""
    if point.mode is not None:
        load = (
            f"concurrency {point.concurrency}"
            if point.rate is None
            else f"{point.rate:g} requests/s"
        )
        return f"{point.backend} batch {point.batch_size}, {load}{again}"
    if point.processes is not None:
        cores = point.cores_per_process
        each = "" if cores is None else f" of {of_cores(cores)}"
        return (
            f"{point.backend} batch {point.batch_size}, {point.processes} "
            f"process{'es' if point.processes > 1 else ''}{each}{again}"
        )
    return f"{point.backend} batch {point.batch_size}{again}" if point.batch_size else point.key


def _rate(output: PointOutput) -> float | None:
    """Items/s: the mean of items/t over the trials, or what the point's own record says. Of several
    processes all items over the time of the point.
    """
    if output.execution is not None:
        return output.execution.rate
    if output.result is not None:
        return output.result.throughput
    if output.streams and output.begin_ns is not None and output.end_ns is not None:
        batches = sum(stream.batches for stream in output.streams)
        return output.items * batches / max(output.end_ns - output.begin_ns, 1) * 1e9
    times = [time for time in output.trials_ns if time > 0]
    return output.items * sum(1e9 / time for time in times) / len(times) if times else None


def _trial_rows(output: PointOutput) -> list[tuple[int, str, int, int, int]]:
    warm = [
        (i, "warmup", start, dur, output.items)
        for i, (start, dur) in enumerate(
            zip(output.warmup_starts_ns, output.warmup_ns, strict=False)
        )
    ]
    kept = [
        (i, "trial", start, dur, output.items)
        for i, (start, dur) in enumerate(zip(output.starts_ns, output.trials_ns, strict=True))
    ]
    return warm + kept

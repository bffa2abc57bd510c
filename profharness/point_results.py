"""What becomes of each point's output in one pass of a scan: its trials, its record, its progress, and a finding if it failed."""

from __future__ import annotations

from profharness.findings import finding
from profharness.recorder import Recorder
from profharness.report.progress import Progress
from profharness.scans import Point, PointOutput, Scan


class PointResults:
    """Takes the outputs of one pass in their order."""

    def __init__(self, scan: Scan, pass_name: str, recorder: Recorder, progress: Progress) -> None:
        self._scan = scan
        self._pass = pass_name
        self._recorder = recorder
        self._progress = progress
        self._done = 0
        self._failed: set[str] = set()
        self._said: set[str] = set()

    def take(self, point: Point, measured: PointOutput) -> None:
        """Record one point. A reason that was told for an earlier point, or for the same one, is not told again."""
        self._recorder.write_trials(self._pass, point.key, _trial_rows(measured))
        self._recorder.add_point(self._scan.result(point, self._pass, measured))
        if not measured.ok:
            self._tell(point, measured)
        self._done += 1
        self._progress.point_done(self._pass, _label(point), self._done)

    def _tell(self, point: Point, measured: PointOutput) -> None:
        known = point.id in self._failed or (not measured.begun and measured.error in self._said)
        self._failed.add(point.id)
        self._said.add(measured.error)
        if known:
            return
        again = ", when it was measured again" if point.repeat else ""
        what = f"{point.id} failed in the {self._pass} pass{again}" if measured.begun else f"no point from {point.id} on was measured in the {self._pass} pass"
        self._recorder.add_finding(finding("point-failed", f"{what}: {measured.error}", point=point.id))


def _label(point: Point) -> str:
    """As people call it: `batch 256` or its id."""
    return f"{point.backend} batch {point.batch_size}" + (" again" if point.repeat else "") if point.batch_size else point.key


def _trial_rows(output: PointOutput) -> list[tuple[int, str, int, int, int]]:
    warm = [(i, "warmup", start, dur, output.items) for i, (start, dur) in enumerate(zip(output.warmup_starts_ns, output.warmup_ns, strict=False))]
    kept = [(i, "trial", start, dur, output.items) for i, (start, dur) in enumerate(zip(output.starts_ns, output.trials_ns, strict=True))]
    return warm + kept

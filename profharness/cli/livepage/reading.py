"""The state of a run that is being measured, from the files that it writes anyway: its manifest,
the trials of each point, the samplers' files. Nothing is asked of the process that measures.

What was read of a point is kept, so that a look costs what is new since the last one.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.analysis.axes.points import is_axes_scan, rated_points
from profharness.analysis.live.order import Clock, Order, order_of
from profharness.analysis.live.points import curve_of, key_of, point_words, summary_of
from profharness.analysis.live.records import LivePoint, LiveRun
from profharness.analysis.records import PointSummary
from profharness.analysis.run.trials import BARE, PointTrials, collect
from profharness.errors import InputError
from profharness.rundir import trials
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.rundir.paths import RunDir
from profharness.rundir.shown.screen import one_line
from profharness.trace.model import Trace
from profharness.units import several

_MOST_FINDINGS = 5
_LONGEST = 300


class RunReader:
    """Reads one run directory again and again. `title` is shown until there is a manifest."""

    def __init__(self, root: Path, title: str = "") -> None:
        self._run = RunDir(root)
        self._title = title or root.name
        self._stamp: tuple[int, int, int] | None = None
        self._manifest: Manifest | None = None
        self._summaries: dict[tuple[str, str], PointSummary] = {}
        self._points: tuple[LivePoint, ...] = ()

    @property
    def manifest(self) -> Manifest | None:
        """As it was at the last look."""
        return self._manifest

    def look(self) -> LiveRun:
        """The run as it is now. A manifest that cannot be read leaves what was known."""
        self._read()
        manifest = self._manifest
        if manifest is None:
            return LiveRun(title=self._title)
        clock = _clock()
        order = order_of(manifest, clock, self._begun(manifest))
        curve_pass = _curve_pass(manifest)
        points = tuple(self._point(record, order) for record in manifest.points)
        return LiveRun(
            title=_title(manifest) or self._title,
            state=manifest.state,
            error=manifest.error,
            kind=manifest.kind,
            facts=_facts(manifest),
            command=manifest.command,
            unit=_unit(manifest),
            seconds=_seconds(manifest, clock),
            passes=order.passes,
            points=points,
            curve=curve_of(manifest, points, curve_pass),
            curve_pass=curve_pass,
            axes=_axes(manifest),
            now=order.now,
            now_s=order.now_s,
            following=order.following,
            more=order.more,
            done=order.done,
            planned=order.planned,
            left=order.left,
            findings=_findings(manifest),
        )

    def _read(self) -> None:
        """The manifest, where it was replaced since the last look."""
        try:
            found = self._run.manifest_path.stat()
            stamp = found.st_mtime_ns, found.st_ino, found.st_size
            if stamp != self._stamp:
                self._manifest = self._run.read_manifest()
                self._stamp = stamp
        except (OSError, InputError):
            return  # not there yet, or gone

    def _begun(self, manifest: Manifest) -> tuple[str, ...]:
        """The points of the running pass that have a folder, the one begun last at the end; none
        where the points are planned.
        """
        running = next((one.name for one in manifest.passes if one.state == "running"), None)
        if manifest.scan is None or running is None or manifest.scan.planned.get(running):
            return ()
        try:
            with os.scandir(self._run.root / "points" / running) as found:
                folders = [(one.stat().st_mtime_ns, one.name) for one in found if one.is_dir()]
        except OSError:
            return ()
        return tuple(name for _, name in sorted(folders))

    def _point(self, record: PointRecord, order: Order) -> LivePoint:
        key = key_of(record)
        place = record.pass_name, key
        if place not in self._summaries:
            self._summaries[place] = summary_of(record, self._trials(record, key))
        return LivePoint(
            pass_name=record.pass_name,
            key=key,
            name=point_words(key),
            summary=self._summaries[place],
            took_s=order.took_s.get(place),
        )

    def _trials(self, record: PointRecord, key: str) -> PointTrials | None:
        """The trials of a point over all of its processes; None where it has none."""
        if record.state != "ok" or record.mode is not None or record.execution is not None:
            return None
        folder = self._run.point_path(record.pass_name, key)
        names = [f"trials-{one}.csv" for one in range(len(record.streams))] or ["trials.csv"]
        try:
            read = [trials.read(folder / name, point=key) for name in names]
        except (OSError, InputError):
            return None
        return _joined([_one(trace, record, key) for trace in read])


def _one(trace: Trace, record: PointRecord, key: str) -> PointTrials | None:
    items = record.items_per_trial or record.batch_size or 1
    found = next(iter(collect(trace, {key: items}).values()), None)
    return None if found is None else replace(found, pass_name=record.pass_name)


def _joined(read: list[PointTrials | None]) -> PointTrials | None:
    """The trials of several processes as those of one point; None where one of them has none."""
    known = [one for one in read if one is not None]
    if not known or len(known) != len(read):
        return None
    first = known[0]
    return PointTrials(
        first.pass_name,
        first.key,
        np.concatenate([one.starts_ns for one in known]),
        np.concatenate([one.durations_ns for one in known]),
        np.concatenate([one.items for one in known]),
        np.repeat(np.arange(len(known)), [len(one.starts_ns) for one in known]),
    )


def _clock() -> Clock:
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return Clock(boot, boot - time.clock_gettime_ns(time.CLOCK_MONOTONIC))


def _curve_pass(manifest: Manifest) -> str:
    """The pass that throughput comes from: bare, else the first that has points."""
    present = dict.fromkeys(record.pass_name for record in manifest.points)
    return BARE if BARE in present or not present else next(iter(present))


def _title(manifest: Manifest) -> str:
    if manifest.scan is not None and not manifest.command:
        return manifest.scan.name
    return one_line(" ".join(word.rsplit("/", 1)[-1] for word in manifest.command), _LONGEST)


def _facts(manifest: Manifest) -> tuple[str, ...]:
    """Device, host, begin and id."""
    node = manifest.nodes[0] if manifest.nodes else None
    facts = []
    if node is not None:
        devices = [one.name for one in node.devices if one.kind != "cpu"]
        facts += [", ".join(dict.fromkeys(devices)) or node.cpu_model, node.host]
    if manifest.ranks > 1:
        facts.append(f"{manifest.ranks} ranks")
    facts += [manifest.created.replace("T", " ").replace("Z", " UTC"), manifest.id]
    return tuple(fact for fact in facts if fact)


def _unit(manifest: Manifest) -> str:
    if manifest.scan is None:
        return "items/s"
    rated = rated_points(manifest)
    return f"{several(manifest.scan.item)}/s" if rated is None else rated.unit


def _axes(manifest: Manifest) -> tuple[str, ...]:
    if not is_axes_scan(manifest) or manifest.scan is None:
        return ()
    axes = manifest.scan.settings["axes"]
    return tuple(map(str, axes)) if isinstance(axes, dict) else ()


def _seconds(manifest: Manifest, clock: Clock) -> float | None:
    began = [one.start_boot_ns for one in manifest.passes if one.start_boot_ns is not None]
    ends = [one.end_boot_ns for one in manifest.passes if one.end_boot_ns is not None]
    if not began:
        return None
    last = clock.boot_ns if manifest.state == "running" else max(ends, default=clock.boot_ns)
    return max(last - min(began), 0) / 1e9


def _findings(manifest: Manifest) -> tuple[str, ...]:
    """What went wrong so far, in the manifest's words."""
    wrong = [one.message for one in manifest.findings if one.severity in ("warning", "error")]
    return tuple(one_line(message, _LONGEST) for message in wrong[-_MOST_FINDINGS:])

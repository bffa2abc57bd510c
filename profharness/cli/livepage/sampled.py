"""The telemetry of a run that is being measured: the few series that say whether the work goes on,
of every host whose sampler writes into the run directory.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.analysis.live.records import LiveSeries
from profharness.errors import InputError
from profharness.rundir.series.recent import RecentSamples, RecentSeries, recent_of
from profharness.rundir.telemetry_files import SAMPLES

SHOWN = (
    ("gpu_percent", "gpu_activity_mean", "exporter_gpu_util"),
    ("power_w", "power_average", "power_energy"),
    ("gpu_memory_used",),
    ("cpu_tree",),
    ("cpu_node",),
    ("memory_tree",),
    ("power_cpu_energy", "power_cpu"),
    ("power_node", "power_node_energy"),
)
"""In this order; of each group the first that a device has."""
_METRICS = frozenset(metric for group in SHOWN for metric in group)
_POINTS = 150
"""Of one line: more than that nobody sees in so small a picture."""
_MOST_HOSTS = 4


class TelemetryReader:
    """Reads the samplers' files of one run again and again."""

    def __init__(self, root: Path) -> None:
        self._folder = root / "telemetry"
        self._hosts: dict[str, RecentSamples] = {}

    def look(self) -> tuple[LiveSeries, ...]:
        """The series so far, devices first; empty where no sampler has begun."""
        for path in sorted(self._folder.glob(f"*{SAMPLES}"))[:_MOST_HOSTS]:
            if path.name not in self._hosts and (found := recent_of(path, _METRICS)):
                self._hosts[path.name] = found
        shown: list[LiveSeries] = []
        for samples in self._hosts.values():
            try:
                shown += _chosen(samples.read(), samples.host)
            except (InputError, OSError):
                continue  # it is packed at the end of a run
        return tuple(shown)


def _chosen(series: tuple[RecentSeries, ...], host: str) -> list[LiveSeries]:
    chosen = []
    for group in SHOWN:
        devices = dict.fromkeys(one.device for one in series if one.metric in group)
        for device in devices:
            metric = next(
                metric
                for metric in group
                if any(one.metric == metric and one.device == device for one in series)
            )
            one = next(one for one in series if (one.metric, one.device) == (metric, device))
            known = np.isfinite(one.value)
            one = replace(one, at_ns=one.at_ns[known], value=one.value[known])
            if len(one.at_ns) > 1 and not (device and not one.value.any()):
                chosen.append(_thinned(one, host))
    return chosen


def _thinned(one: RecentSeries, host: str) -> LiveSeries:
    """Means over equal stretches of time, where the samples are many."""
    at = (one.at_ns - one.at_ns[-1]) / 1e9
    value = one.value
    if len(at) > _POINTS:
        stretch = np.minimum(
            ((at - at[0]) / (at[-1] - at[0]) * _POINTS).astype(np.int64), _POINTS - 1
        )
        count = np.bincount(stretch, minlength=_POINTS)
        known = count > 0
        at = (np.bincount(stretch, at, _POINTS)[known]) / count[known]
        value = (np.bincount(stretch, value, _POINTS)[known]) / count[known]
    return LiveSeries(
        metric=one.metric,
        unit=one.unit,
        device=one.device,
        host=host,
        at_s=tuple(at.tolist()),
        values=tuple(value.tolist()),
    )

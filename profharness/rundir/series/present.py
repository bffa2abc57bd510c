"""What a sampler says of the time since one last asked, in a few words for a terminal."""

from __future__ import annotations

from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.series.recent import RecentSamples, RecentSeries, recent_of

_SHOWN = (
    (("gpu_percent", "gpu_activity_mean"), "GPU {:.0f} %", "mean"),
    (("power_w", "power_average", "power_energy"), "{:.0f} W", "sum"),
    (("cpu_tree",), "{:.2g} cores", "sum"),
)
"""Metrics of which the first that is there counts, what is said of it, and what several devices are
together."""
_METRICS = frozenset(metric for group, _, _ in _SHOWN for metric in group)


class Present:
    """The file of one host. Nothing that is wrong with it is told here."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._samples: RecentSamples | None = None
        self._until_ns = 0

    def words(self) -> str:
        """`GPU 97 %, 324 W, 1.2 cores`; empty where nothing was sampled since the last time."""
        try:
            if self._samples is None:
                self._samples = recent_of(self._path, _METRICS)
            series = () if self._samples is None else self._samples.read()
        except (InputError, OSError):
            return ""
        words = []
        for group, text, together in _SHOWN:
            means = self._means(group, series)
            if means and any(means):
                words.append(text.format(sum(means) / (len(means) if together == "mean" else 1)))
        self._until_ns = max((int(one.at_ns[-1]) for one in series), default=self._until_ns)
        return ", ".join(words)

    def _means(self, group: tuple[str, ...], series: tuple[RecentSeries, ...]) -> list[float]:
        """The mean of each device since the last time, of the first metric that one has."""
        for metric in group:
            new = [one.value[one.at_ns > self._until_ns] for one in series if one.metric == metric]
            means = [float(values.mean()) for values in new if len(values)]
            if means:
                return means
        return []

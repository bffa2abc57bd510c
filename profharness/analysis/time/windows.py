"""Where figures hold: one merged set of intervals for each device, and what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import I32, I64


@dataclass(frozen=True, eq=False)
class Windows:
    """Where figures hold, as merged sets of intervals, and the words for it.

    `when` is what all devices have in common: collectives and telemetry are seen there, and what
    the host did while they ran. `of_device` are the windows of the devices that have one of their
    own, by their position in `trace.devices`. `steps` counts the steps inside, and `marks` is when
    the host launched them, where that is not when they ran.
    """

    when: Intervals
    label: str
    steps: int = 0
    of_device: Mapping[int, Intervals] = field(default_factory=dict)
    marks: Intervals | None = None

    @property
    def on_host(self) -> Intervals:
        """When the host worked on these steps: what it did for them by itself lies there."""
        return self.when if self.marks is None else self.marks

    def on(self, device: int) -> Intervals:
        """The window of one device."""
        return self.of_device.get(device, self.when)

    def total_ns(self, devices: Iterable[int]) -> int:
        """The length of the windows of these devices together."""
        return sum(self.on(device).total for device in devices)

    @cached_property
    def everywhere(self) -> Intervals:
        """The window of any device."""
        return intervals.union(self.when, *self.of_device.values()) if self.of_device else self.when

    def inside_ns(self, spans: Intervals, device: I32) -> I64:
        """How many ns of each span lie in the window of its device."""
        inside = intervals.inside_ns(spans, self.when)
        for place, own in self.of_device.items():
            rows = np.flatnonzero(device == place)
            inside[rows] = intervals.inside_ns(Intervals(spans.start[rows], spans.end[rows]), own)
        return inside

    def contains(self, at_ns: I64, device: I32) -> npt.NDArray[np.bool_]:
        """Whether each instant lies in the window of its device."""
        inside = intervals.contains(self.when, at_ns)
        for place, own in self.of_device.items():
            rows = np.flatnonzero(device == place)
            inside[rows] = intervals.contains(own, at_ns[rows])
        return inside

    def limited(self, held: Intervals) -> Windows:
        """Only what lies in a merged set."""
        return replace(
            self,
            when=intervals.intersect(self.when, held),
            of_device={
                device: intervals.intersect(own, held) for device, own in self.of_device.items()
            },
        )

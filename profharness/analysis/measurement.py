"""One trace in one set of windows, with everything that several metrics share computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import filling
from profharness.analysis.kernels import occupancy as residence
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.filling import Fill, Offered
from profharness.analysis.kernels.occupancy import Occupancy
from profharness.analysis.kernels.roofline import FilledSplit, filled_split
from profharness.analysis.power.narrowing import Narrowing, narrowing, with_idle
from profharness.analysis.records import Partition
from profharness.analysis.time.counts import devices_with_work, pass_of
from profharness.analysis.time.device_work import Delays, Work, queued_ns
from profharness.analysis.time.launching import launch_bound_ns
from profharness.analysis.time.steps import Step, measured
from profharness.analysis.time.timeless import no_timeline
from profharness.analysis.time.timeline import partition_windows
from profharness.analysis.time.whole import Near, Pace, Whole
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import F64, Trace

I64 = npt.NDArray[np.int64]


@dataclass(eq=False)
class Measurement:
    """What the metric table reads. `traced` says that a profiler stretched the window;
    `allowed_cores` is from the manifest.

    Each device has its own window, `windows.on(device)`, and `window_ns` is their sum. `when` is
    what they have in common: there the host, collectives and telemetry are seen.
    """

    trace: Trace
    windows: Windows
    traced: bool = True
    allowed_cores: float | None = None
    point: str | None = None
    known: Whole | None = None

    @property
    def when(self) -> Intervals:
        return self.windows.when

    @property
    def on_host(self) -> Intervals:
        return self.windows.on_host

    @cached_property
    def devices(self) -> tuple[int, ...]:
        return tuple(devices_with_work(self.trace))

    @property
    def window_ns(self) -> int:
        return self.windows.total_ns(self.devices)

    @cached_property
    def origin(self) -> str:
        """Where figures come from, as they print it: pass (or file format) and window."""
        name = pass_of(self.trace) or ", ".join(
            sorted({source.format for source in self.trace.sources})
        )
        return f"{name}: {self.windows.label}" if name else self.windows.label

    @cached_property
    def timeless(self) -> str:
        """Why the kernels lie on no time axis, as what a figure would need; empty where they do."""
        return no_timeline(self.trace)

    @cached_property
    def whole(self) -> Whole:
        """What is the same in all windows of the trace: as given, else made here."""
        return Whole(self.trace, KernelFacts(self.trace)) if self.known is None else self.known

    @property
    def work(self) -> Work:
        return self.whole.work

    @cached_property
    def near(self) -> Near:
        """The part of the trace that the windows see: what else there is adds nothing to times
        inside them.
        """
        return self.whole.near(self.windows.everywhere)

    @cached_property
    def _recorded(self) -> Partition:
        """The split of the windows by the records alone."""
        return partition_windows(self.near.trace, self.windows, self.devices, self.whole.idle)

    @cached_property
    def partition(self) -> Partition:
        """The split of the windows, idle time by cause, as far as telemetry narrows it."""
        split = self._recorded
        if not split.open_ns:
            return split
        again = sum(
            intervals.intersect(self.whole.recurring(one, self.point), self.windows.on(one)).total
            for one in self.devices
        )
        split = msgspec.structs.replace(split, open_recurs=2 * again > split.open_ns)
        return with_idle(split, self.narrowing.idle) if self.narrowing.said else split

    @cached_property
    def narrowing(self) -> Narrowing:
        """What telemetry says of the time in which unrecorded work may have run."""
        sampled, idle = self.facts.yardstick.telemetry, self.whole.idle
        if not sampled or not self._recorded.open_ns:
            return Narrowing()
        return narrowing(self.trace, idle, self.windows, self.devices, sampled)

    @cached_property
    def longest_gaps_ns(self) -> tuple[int, int]:
        """The longest gap of any of the devices: of what is known to be idle, and with what may
        have been unrecorded work.
        """
        idle, own = self.whole.idle, [(one, self.windows.on(one)) for one in self.devices]
        return (
            max((idle.longest(device, when) for device, when in own), default=0),
            max((idle.longest_with_unknown(device, when) for device, when in own), default=0),
        )

    @cached_property
    def kernel_spans(self) -> Intervals:
        """All kernels, cut to nothing: starts and ends as recorded."""
        return intervals.lasting(self.trace.kernels.start_ns, self.trace.kernels.dur_ns)

    @cached_property
    def kernel_ns(self) -> I64:
        """How much of each kernel lies in the windows, in ns."""
        return self.windows.inside_ns(self.kernel_spans, self.trace.kernels.device)

    @cached_property
    def kernel_shares(self) -> F64:
        """The part of each kernel that lies in the windows, between 0 and 1."""
        lengths = self.trace.kernels.dur_ns
        return np.where(lengths > 0, self.kernel_ns / np.maximum(lengths, 1), 0.0)

    @cached_property
    def linked_share(self) -> float | None:
        """The share of kernel time in the windows whose launching call is known."""
        total = int(self.kernel_ns.sum())
        linked = self.work.call[: self.work.kernels] >= 0
        return int(self.kernel_ns[linked].sum()) / total if total else None

    @cached_property
    def useful_flops(self) -> float | None:
        """FLOPs of matrix products in the windows, without those of a forward pass that is run
        again; None where no operator says its shapes.
        """
        flops = self.facts.work.useful
        return float(np.nansum(flops * self.kernel_shares)) if np.isfinite(flops).any() else None

    @cached_property
    def moved_bytes(self) -> float | None:
        """Bytes moved in the windows, by counters or at least; None where neither is known."""
        moved = self.facts.rates.moved
        return float(np.nansum(moved * self.kernel_shares)) if np.isfinite(moved).any() else None

    @cached_property
    def delays(self) -> Delays:
        """Delays of the kernels that start inside the windows."""
        everywhere = self.whole.delays
        kernels, rows = self.trace.kernels, everywhere.kernel
        inside = self.windows.contains(kernels.start_ns[rows], kernels.device[rows])
        return Delays(
            everywhere.kernel[inside], everywhere.delay[inside], everywhere.met_empty[inside]
        )

    @cached_property
    def has_links(self) -> bool:
        """Whether any kernel or copy in the trace is linked to its launching call."""
        return bool((self.work.call >= 0).any())

    @cached_property
    def launch_bound_ns(self) -> int:
        """Over all devices, as if nothing ran that is not recorded."""
        return sum(
            self._launch_bound_ns(device, self.windows.on(device)) for device in self.devices
        )

    @cached_property
    def launch_bound_least_ns(self) -> int:
        """Over all devices, without the time in which unrecorded work may have run."""
        known = self.whole.idle.known
        return sum(
            self._launch_bound_ns(device, known(device, self.windows.on(device)))
            for device in self.devices
        )

    def _launch_bound_ns(self, device: int, windows: Intervals) -> int:
        return launch_bound_ns(self.work, device, windows, self.whole.launching(device))

    @cached_property
    def queue_depth_ns(self) -> float:
        """Integral of the number of launched and unfinished pieces of work over the windows, over
        all devices.
        """
        return float(queued_ns(self.work, self.windows))

    @cached_property
    def offered(self) -> list[Offered]:
        """For each device what its kernels offer its compute units."""
        return [
            filling.offered(self.near.trace, device, self.windows.on(device))
            for device in self.devices
        ]

    @cached_property
    def fill(self) -> Fill | None:
        """Fill over all devices; None where one of them does not say how many compute units
        it has.
        """
        fills = [part.fill for part in self.offered if part.fill is not None]
        return filling.add(fills) if fills and len(fills) == len(self.offered) else None

    @property
    def facts(self) -> KernelFacts:
        """What is known of each kernel of the whole trace."""
        return self.whole.facts

    @cached_property
    def occupancy(self) -> Occupancy | None:
        """Occupancy over all devices; None where the registers and LDS of no kernel in the windows
        are known.
        """
        held = self.facts.residency.of(self.near.rows)
        total = residence.add(
            [
                residence.occupancy(self.near.trace, device, self.windows.on(device), held)
                for device in self.devices
            ]
        )
        return total if total.known_kernel_ns else None

    @cached_property
    def filled_split(self) -> FilledSplit:
        """Compute time that fills the devices, by what holds its kernels back."""
        rows = self.near.rows
        return filled_split(
            self.near.trace,
            {device: part.filled for device, part in zip(self.devices, self.offered, strict=True)},
            self.windows,
            self.facts.rates.of(rows),
            lambda row: self.facts.ceilings_of(row if rows is None else int(rows[row])),
        )

    @property
    def steps(self) -> list[Step]:
        """Steady steps (or trials) of all processes."""
        return self.pace.steps

    @property
    def pace(self) -> Pace:
        """What the steps say, in whichever windows."""
        return self.whole.pace(self.point)


def measure(
    trace: Trace,
    point: str | None = None,
    *,
    traced: bool = True,
    allowed_cores: float | None = None,
    known: Whole | None = None,
) -> Measurement:
    """The measurement of a trace, or of one of its points, in the windows that `steps.measured`
    chooses.

    `known` is what was made of the same trace already; its facts also hold what it is measured
    against.
    """
    return Measurement(
        trace,
        measured(trace, point),
        traced=traced,
        allowed_cores=allowed_cores,
        point=point,
        known=known,
    )

"""What the driver and counters of the hardware say of the devices, as sentences beside the split of
a window. A sentence compares equal stretches of time: the samples of the window itself where there
are enough, else it says that they are of the whole run.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import msgspec

from profharness.analysis.records import Summary, TelemetryRow
from profharness.report.tables.device import device_lines
from profharness.report.text import names
from profharness.report.text.figures import finite
from profharness.units import format_ns, format_number

_ELSEWHEN = " over the whole run"
_SAME = 0.9  # of the sampled time: a window that covers so much is the whole run


def counted(summary: Summary) -> str:
    """`Counters of the hardware meanwhile: GPU 100 %, CUs active 38.0 %, ...`; empty without
    them.
    """
    rows, when = _compared(summary, summary.telemetry)
    lines = device_lines(rows)
    return f"Counters of the hardware{when}: {'; '.join(lines)}." if lines else ""


def gpu_percent(summary: Summary) -> str:
    """What the driver's figure said of a device that is idle; empty where it did not mislead."""
    figure = summary.metrics.get(names.GPU_PERCENT)
    value = None if figure is None else finite(figure.value)
    partition = summary.partition
    if value is None or partition is None or partition.window_ns <= 0:
        return ""
    own = [row for row in summary.telemetry if row.metric == names.GPU_PERCENT and row.device]
    rows, when = _compared(summary, own)
    if len(rows) == 1 and rows[0].captured is not None:
        value = rows[0].mean
    idle = 100 * partition.idle_ns / partition.window_ns
    if idle < 10 or value < 90:
        return ""
    return f'The driver\'s "GPU %" said {value:.0f}{when or " meanwhile"}.'


def same_time(summary: Summary, metric: str) -> float | None:
    """What a sampled metric was in the window that was captured, as a multiple of its mean over the
    whole run; 1 where the window is the whole run, None where samples do not tell.
    """
    sampled = [row for row in summary.telemetry if row.device]
    own = [row for row in sampled if row.metric == metric]
    rows, when = _compared(summary, own or sampled)
    if not when:
        return 1.0
    whole = sum(row.mean for row in own)
    if when.startswith(_ELSEWHEN) or len(rows) != len(own) or not whole:
        return None
    return sum(row.mean for row in rows) / whole


def _compared(summary: Summary, rows: Sequence[TelemetryRow]) -> tuple[Sequence[TelemetryRow], str]:
    """The rows with what they say of the window that was captured, and words for it. Where too few
    samples lie there, all rows as they are, and which time they are of.
    """
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return rows, ""
    of_devices = [row for row in rows if row.device]
    within = [
        msgspec.structs.replace(row, mean=row.captured)
        for row in of_devices
        if row.captured is not None
    ]
    if device_lines(within) or (within and not device_lines(rows)):
        return within, " meanwhile"
    span_ns = max((row.span_ns for row in of_devices), default=0)
    devices = max(len(summary.devices), 1)
    if partition.window_ns / devices >= _SAME * span_ns:
        return rows, ""
    return rows, f"{_ELSEWHEN} of {format_ns(span_ns, 3)}"


def nothing_of(summary: Summary) -> str:
    """What is recorded where no figure can be given: what was counted without times, and of what
    there is nothing.
    """
    if summary.run is not None or not summary.sources:
        return "Nothing was measured: no trace and no point gave figures."
    operators = summary.metrics.get("operators")
    ran = operators is not None and operators.value is not None
    if counted := _counted_kernels(summary):
        beside = " Operators of the host are recorded beside them." if ran else ""
        return (
            f"{format_number(counted)} kernel{'' if counted == 1 else 's'} are known by hardware "
            f"counters alone, without times, so no device can be judged.{beside}"
        )
    if ran:
        return "Operators of the host are recorded here, and no device work: none can be judged."
    return "No device work and no operators are recorded here, so no device can be judged."


def _counted_kernels(summary: Summary) -> int:
    """The kernels of which there are counters; each has all counters of its name."""
    return sum(
        max(row.dispatches for row in rows)
        for _, rows in groupby(
            sorted(summary.counters, key=attrgetter("kernel")), attrgetter("kernel")
        )
    )

"""Why a point, a command or a kernel moved between two runs: what changed with it, and how much of
the change it explains.

The time of a trial (or step) is split into the parts of its device window: compute, exposed
communication, exposed copies, idle by cause. The differences of these parts sum to the whole
difference, so that each part's is its effect. A part counts when its effect exceeds the noise of
the comparison and a tenth of the change. Within compute the kernels are compared by name. Clock,
fill, launch-bound share and cores change nothing by themselves: they stand beside the parts that
they explain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.records import Figure, Partition, PointKernel
from profharness.units import format_share

Kind = Literal[
    "kernels-switched",
    "kernel-time",
    "kernel-calls",
    "communication",
    "copy",
    "idle",
    "clock",
    "fill",
    "occupancy",
    "launch-bound",
    "power",
    "throttled",
    "cpu",
    "operator-time",
    "operators-switched",
    "category",
    "ceiling",
]
WORTH = 0.1
LEAST = 0.02
_SWITCHED = 0.05
MOST_NAMES = 3
_LONGEST = 60
SAME_LAUNCH, SAME_CALLS = "same launch, other time per call", "as many calls, other time per call"
_CAUSES = {
    "no_host_record_ns": "idle without a host record",
    "waiting_copy_or_event_ns": "waiting on copies or events",
    "queued_gap_ns": "gaps between queued kernels",
    "launch_in_progress_ns": "launches in progress",
    "synchronisation_ns": "synchronisation",
    "host_not_ready_ns": "the host not ready",
}
# Figures that explain: name, kind, in words, and the smallest change that counts (relative, or of
# the share itself).
_MODIFIERS: tuple[tuple[str, Kind, str, float, bool], ...] = (
    ("clock_gpu", "clock", "the device's clock", 0.03, True),
    ("throttle_power", "throttled", "time held down by the power limit", 0.03, False),
    ("throttle_thermal", "throttled", "time held down by temperature", 0.01, False),
    ("launch_bound", "launch-bound", "the launch-bound share", 0.05, False),
    ("fill_busy", "fill", "fill while busy", 0.05, False),
    ("occupancy", "occupancy", "occupancy", 0.05, False),
    ("cores_used", "cpu", "cores used", 0.1, True),
    ("cpu_tree_wait", "cpu", "cores waited for", 0.5, True),
)


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Something that changed. `effect` is what it adds to the time per trial or step, as a share of
    A's; None for what only explains.

    `noise` is the effect that chance gives, where known.
    """

    kind: Kind
    message: str
    effect: float | None = None
    noise: float | None = None


@dataclass(frozen=True)
class Side:
    """One run's view of a point or a command: time per trial or step (any unit), the split of its
    window, figures and kernels.
    """

    time: float
    partition: Partition | None
    figures: Mapping[str, Figure]
    kernels: Sequence[PointKernel] = ()


def reasons(a: Side, b: Side, noise: float | None) -> tuple[Reason, ...]:
    """The reasons of a change from `a` to `b`: parts that go its way, the largest first, parts that
    go against it, then what explains. `noise` is the relative change that chance gives.
    """
    change = b.time / a.time - 1
    least = max(noise or 0.0, WORTH * abs(change), LEAST if noise is None else 0.0)
    parts = [part for part in _parts(a, b) if abs(part.effect or 0.0) > least]
    inside = list(_kernels(a, b, least))
    by_effect = [
        msgspec.structs.replace(cause, noise=noise) for cause in of_way([*parts, *inside], change)
    ]
    return (*by_effect, *_modifiers(a.figures, b.figures))


def of_way(parts: Sequence[Reason], change: float) -> list[Reason]:
    """Those whose effect goes the way of the change before those against it, the largest first."""
    return sorted(
        parts, key=lambda part: ((part.effect or 0.0) * change < 0, -abs(part.effect or 0.0))
    )


def _shares(split: Partition) -> dict[str, int]:
    """Disjoint parts of the window besides compute, in ns."""
    causes = split.idle_causes
    idle = (
        {"idle": split.idle_ns}
        if causes is None
        else {f"idle:{name}": getattr(causes, name) for name in _CAUSES}
    )
    return {
        "communication": split.exposed_communication_ns,
        "copy": split.exposed_copy_ns,
        **idle,
        "unrecorded": split.idle_or_not_recorded_ns,
    }


_Effects = dict[str, tuple[float, float]]


def _effects(a: Side, b: Side) -> _Effects:
    """Per part its time per trial in both, as shares of a's whole time; empty where one of the runs
    has no split.
    """
    if (
        a.partition is None
        or b.partition is None
        or not a.partition.window_ns
        or not b.partition.window_ns
    ):
        return {}
    stretch = b.time / a.time
    first, second = (
        {**_shares(side.partition), "compute": side.partition.compute_ns}
        for side in (a, b)
        if side.partition is not None
    )
    return {
        name: (
            first.get(name, 0) / a.partition.window_ns,
            stretch * second.get(name, 0) / b.partition.window_ns,
        )
        for name in {**first, **second}
    }


def _parts(a: Side, b: Side) -> Iterator[Reason]:
    for name, (before, after) in _effects(a, b).items():
        part, _, cause = name.partition(":")
        if part == "compute":
            continue  # its kernels are listed one by one
        named: dict[str, tuple[Kind, str]] = {
            "communication": ("communication", "exposed communication"),
            "copy": ("copy", "exposed copies"),
            "idle": ("idle", f"idle: {_CAUSES[cause]}" if cause else "idle time"),
            "unrecorded": ("idle", "time that is idle or not recorded"),
        }
        kind, words = named[part]
        message = f"{words} {_moved(before, after)}"
        yield Reason(kind=kind, message=message, effect=after - before)


def _moved(before: float, after: float) -> str:
    return (
        f"{'rose' if after > before else 'fell'} from {format_share(before)} to "
        f"{format_share(after)} of A's time"
    )


def _kernels(a: Side, b: Side, least: float) -> Iterator[Reason]:
    """Kernels that one run has alone, as one switch; kernels of both that take more or less time,
    by calls and by time per call.
    """
    if not a.kernels or not b.kernels or a.partition is None or b.partition is None:
        return
    whole = (a.partition.window_ns, b.partition.window_ns)
    if not all(whole):
        return
    stretch = b.time / a.time
    first, second = ({kernel.name: kernel for kernel in side.kernels} for side in (a, b))
    message = switched(a.kernels, b.kernels)
    if message:
        effect = (
            stretch
            * sum(kernel.total_ns for name, kernel in second.items() if name not in first)
            / whole[1]
            - sum(kernel.total_ns for name, kernel in first.items() if name not in second)
            / whole[0]
        )
        yield Reason(kind="kernels-switched", effect=effect, message=message)
    for name in first.keys() & second.keys():
        before, after = first[name], second[name]
        effect = stretch * after.total_ns / whole[1] - before.total_ns / whole[0]
        if abs(effect) > least:
            yield _of_kernel(before, after, whole, stretch, effect)


def switched(
    before: Sequence[PointKernel], after: Sequence[PointKernel], whole: str = "kernel time"
) -> str:
    """Kernels that only one side has, with their share of its kernel time (called `whole`); empty
    where that is under 5 % on both.
    """
    names = {kernel.name for kernel in before}, {kernel.name for kernel in after}
    gone, new = (
        [kernel for kernel in before if kernel.name not in names[1]],
        [kernel for kernel in after if kernel.name not in names[0]],
    )
    share = [sum(kernel.share for kernel in group) for group in (gone, new)]
    if max(share) < _SWITCHED:
        return ""
    return "; ".join(
        part
        for part in (_listed("gone", gone, share[0], whole), _listed("new", new, share[1], whole))
        if part
    )


def _of_kernel(
    before: PointKernel, after: PointKernel, whole: tuple[int, int], stretch: float, effect: float
) -> Reason:
    """More calls per trial, or more time per call: whichever ratio is larger."""
    call_ratio = (
        (after.calls / whole[1] * stretch) / (before.calls / whole[0])
        if before.calls and after.calls
        else 1.0
    )
    time_ratio = (after.total_ns / max(after.calls, 1)) / (before.total_ns / max(before.calls, 1))
    name = shortened(before.name)
    if abs(math.log(call_ratio)) > abs(math.log(time_ratio)):
        return Reason(
            kind="kernel-calls",
            effect=effect,
            message=f"{name} is called {call_ratio:.2f} times as often",
        )
    shape = (
        ""
        if before.workgroups == after.workgroups or None in (before.workgroups, after.workgroups)
        else f", with {after.workgroups} workgroups instead of {before.workgroups}"
    )
    return Reason(
        kind="kernel-time",
        effect=effect,
        message=f"{name} takes {time_ratio:.2f} times as long per call{shape}",
    )


def _listed(word: str, group: Sequence[PointKernel], share: float, whole: str) -> str:
    if not group:
        return ""
    distinct = list(dict.fromkeys(shortened(kernel.name) for kernel in group))
    rest = len(distinct) - MOST_NAMES
    names = ", ".join(distinct[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
    return f"{word}: {names} ({format_share(share)} of {whole})"


def shortened(name: str) -> str:
    """A kernel's name cut to `_LONGEST` characters."""
    function = function_name(name)
    return function if len(function) <= _LONGEST else f"{function[: _LONGEST - 1]}…"


def _modifiers(a: Mapping[str, Figure], b: Mapping[str, Figure]) -> Iterator[Reason]:
    """Figures of both runs that differ by more than their intervals and the least change that
    counts.
    """
    for name, kind, words, least, relative in _MODIFIERS:
        first, second = a.get(name), b.get(name)
        if (
            first is None
            or second is None
            or first.value is None
            or second.value is None
            or first.unit != second.unit
        ):
            continue
        before, after = float(first.value), float(second.value)
        change = (after / before - 1 if before > 0 else 0.0) if relative else after - before
        if abs(change) <= least or _overlap(first, second):
            continue
        change_words = f"from {_plain(before, first.unit)} to {_plain(after, first.unit)}"
        yield Reason(
            kind=kind, message=f"{words} {'rose' if change > 0 else 'fell'} {change_words}"
        )


def _overlap(a: Figure, b: Figure) -> bool:
    """Whether both have intervals, and these meet."""
    ends = (a.low, a.high, b.low, b.high)
    if any(end is None for end in ends):
        return False
    low_a, high_a, low_b, high_b = (float(end) for end in ends if end is not None)
    return low_a <= high_b and low_b <= high_a


def _plain(value: float, unit: str) -> str:
    return (
        format_share(value)
        if unit == "share"
        else f"{float(f'{value:.4g}'):.6f}".rstrip("0").rstrip(".") + f" {unit}"
    )

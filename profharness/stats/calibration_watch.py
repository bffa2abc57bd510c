"""What else was going on while a calibration measured, and which of its figures that makes
doubtful (docs/metrics.md#calibration).
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Sequence

import msgspec

from profharness.node.ceilings import COPY, Calibration
from profharness.stats.intervals import Intervals
from profharness.stats.streams import Stream, mean_in
from profharness.units import format_share

OTHERS = 0.1
"""Of the node's cores: other programs that keep more of them busy take from what is measured."""
WAITING = 0.5
"""Of the time in which some task of the node waited for a core; the calibration's own threads wait
for one another now and then.
"""
HELD = 0.1
"""Of the time in which the clock was held down, or a quota stopped the process."""
SCATTER = 0.15
"""Of the best round: its median lies at most so far below, or the best one is not repeatable."""
_HOST = ("pressure_cpu", "cpu_throttled")
_DEVICE = ("throttle_thermal", "throttle_external")


def watched(
    every: Sequence[Stream],
    span: Intervals,
    own_cores: float,
    identities: Sequence[str],
    *,
    on_cpu: bool,
) -> dict[str, float]:
    """Means over the measured time, by name; what nothing on this node tells is left out.

    `other_cores`: cores that other programs kept busy. `other_processes`: processes on the device
    beside the calibration. The others are telemetry's own names.
    """
    found: dict[str, float] = {}
    for stream in every:
        value = mean_in(stream, span)
        if value is None:
            continue
        if stream.metric == "cpu_node":
            found["other_cores"] = max(value - own_cores, 0.0)
        elif stream.metric in _HOST and on_cpu:
            found[stream.metric] = value
        elif on_cpu or not _is_device(stream, identities):
            continue
        elif stream.metric == "gpu_processes":
            found["other_processes"] = max(value - 1, 0.0)
        elif stream.metric in _DEVICE:
            found[stream.metric] = value
    return found


def _is_device(stream: Stream, identities: Sequence[str]) -> bool:
    """Whether a stream is of the device, by how the drivers name it."""
    return stream.identity in identities or stream.identity.partition("/")[0] in identities


def judged(calibration: Calibration, seen: dict[str, float]) -> Calibration:
    """The calibration with what was seen beside it, and without belief in what that spoils."""
    found, why = calibration, _beside(seen, on_cpu=calibration.kind == "cpu")
    for figure in (*calibration.gemm_flops, COPY):
        reason = why or _scatter(calibration.rounds.get(figure, ()))
        if reason:
            found = found.doubted(figure, reason)
    return msgspec.structs.replace(found, watched=seen)


def completed(calibration: Calibration, kept: Calibration) -> Calibration:
    """The calibration with figures of one that is kept in place of those that are not believed: as
    far as it was watched, too, and this one did not go beyond them, which proves them too low.
    """
    found = calibration
    for doubt in calibration.doubts:
        earlier, now = kept.believed(doubt.figure), calibration.rate(doubt.figure)
        rounds = kept.rounds.get(doubt.figure, ())
        if not earlier or not rounds or (now or 0.0) > earlier * (1 + SCATTER):
            continue
        is_copy = doubt.figure == COPY
        rates = {} if is_copy else {doubt.figure: earlier}
        found = msgspec.structs.replace(
            found,
            gemm_flops={**found.gemm_flops, **rates},
            copy_bytes_per_s=earlier if is_copy else found.copy_bytes_per_s,
            rounds={**found.rounds, doubt.figure: rounds},
            doubts=tuple(one for one in found.doubts if one != doubt),
        )
    return found


def _beside(seen: dict[str, float], *, on_cpu: bool) -> str:
    """What else was going on that spoils every figure; empty where nothing was."""
    cores, node = seen.get("other_cores", 0.0), os.cpu_count() or 1
    if on_cpu and cores > OTHERS * node:
        return f"other programs kept {cores:.2g} of {node} cores busy while it was measured"
    if on_cpu and (waiting := seen.get("pressure_cpu", 0.0)) > WAITING:
        return f"tasks waited for a core {format_share(waiting)} of the time while it was measured"
    if (stopped := seen.get("cpu_throttled", 0.0)) > HELD:
        return f"a CPU quota stopped it {format_share(stopped)} of the time"
    if (others := seen.get("other_processes", 0.0)) > HELD:
        return f"{others:.2g} other processes used the device while it was measured"
    held = max((seen.get(name, 0.0) for name in _DEVICE), default=0.0)
    return (
        f"the device's clock was held down {format_share(held)} of the time" if held > HELD else ""
    )


def _scatter(rounds: Sequence[float]) -> str:
    """That a figure does not come again; empty where it does, and for fewer than three rounds."""
    if len(rounds) < 3 or not max(rounds):
        return ""
    below = 1 - statistics.median(rounds) / max(rounds)
    if below <= SCATTER:
        return ""
    return (
        f"the median of its {len(rounds)} rounds lies {format_share(below)} below the best of them"
    )

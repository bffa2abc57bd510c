"""Whether an answer is right as far as that can be said without knowing the truth: it ended as it
may, in time and in bounds, with a sentence, and its figures are possible.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

from tests.hostile.children import MOST_MEMORY, MOST_SECONDS, Ended

_SAID = (
    "Traceback",
    "itself failed",
    "Exception ignored",
    "Segmentation fault",
    "terminate called",
)
_ANY_SIGN = (
    "residual_ns",
    "bound_ns",
    "causal_low_ns",
    "causal_high_ns",
    "start_ns",
    "end_ns",
    "at_ns",
)
"""Instants, and what may lie on both sides of zero."""
_SLACK = 1e-6
_MOST_SHARE = 1.05
"""Counters of two executions differ a little, and shares of them may go beyond one by so much."""


def faults(line: Sequence[str], ended: Ended, given: int) -> tuple[str, ...]:
    """What is wrong with an answer, a sentence each. `given` is the size of the input in bytes."""
    found = [*_ending(line, ended, given)]
    if not found and ended.status == 0 and ("--json" in line or "json" in line):
        try:
            document = json.loads(ended.out)
        except ValueError as error:
            return (f"what it printed is no JSON: {error}",)
        found += impossible(document)
    return tuple(dict.fromkeys(found))


def _ending(line: Sequence[str], ended: Ended, given: int) -> Iterator[str]:
    if ended.waited:
        yield f"waited for ever (ended after {ended.seconds:.0f} s)"
    elif ended.seconds > MOST_SECONDS:
        yield f"took more than {MOST_SECONDS:.0f} s of processor time"
    if ended.memory > MOST_MEMORY + given:
        yield f"held more than {MOST_MEMORY >> 20} MB"
    said = (ended.err + b"\n" + ended.out[-4000:]).decode(errors="replace")
    for evil in _SAID:
        if evil in said:
            yield f"said {evil!r}: {last_line(ended.err)}"
    allowed = (0, 1, 4) if line[0] == "validate" else (0, 4)  # 1: it found faults
    if ended.status not in allowed and not ended.waited:
        yield f"ended with {ended.status}: {first_line(ended.err)}"
    if ended.status == 4 and not ended.err.startswith(b"error: "):
        yield f"ended with 4, and began with: {first_line(ended.err)}"


def first_line(said: bytes) -> str:
    return said.decode(errors="replace").strip().partition("\n")[0][:200]


def last_line(said: bytes) -> str:
    """Of a traceback the line that names the error."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    told = [line for line in lines if "itself failed" in line]
    return (told or lines or [""])[-1][:200]


def impossible(document: Any) -> list[str]:
    """What no workload can have done, in any of our JSON documents."""
    found = list(_signs(document, ""))
    if isinstance(document, dict):
        if isinstance(document.get("trace"), dict):
            found += _counts(document["trace"], document.get("devices") or {})
        for point in (document, *(document.get("points") or ()), *(document.get("steps") or ())):
            if isinstance(point, dict):
                found += _partition(point.get("partition"))
                found += _figures(point.get("metrics"))
        if "rows" in document:
            found += _hotspots(document)
    return found


def _signs(value: Any, name: str) -> Iterator[str]:
    """Times that last and numbers of things are not negative; no number is beyond all measure."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _signs(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _signs(inner, name)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        if (
            value < 0
            and name not in _ANY_SIGN
            and (
                name.endswith("_ns")
                or name in ("count", "calls", "kernels", "copies", "streams", "samples")
            )
        ):
            yield f"{name} is negative: {value}"
        if not math.isfinite(value):
            yield f"{name} is not finite"


def _counts(trace: dict[str, Any], devices: dict[str, Any]) -> Iterator[str]:
    span, busy, either = (trace.get(name) for name in ("span_ns", "busy_ns", "busy_any_ns"))
    most = None if span is None else span * max(1, trace.get("devices") or 1)
    yield from _at_most("busy_ns", busy, "busy_any_ns", either)
    yield from _at_most("busy_any_ns", either, "span_ns of all devices", most)
    yield from _at_most("busy_ns", busy, "sum_kernel_ns", trace.get("sum_kernel_ns"))
    for name in ("unlinked_kernels", "kernels_in_graphs", "distinct_kernels"):
        yield from _at_most(name, trace.get(name), "kernels", trace.get("kernels"))
    for name, device in devices.items():
        yield from _at_most(
            f"busy_ns of {name}", device["busy_ns"], "busy_any_ns", device["busy_any_ns"]
        )
        yield from _at_most(
            f"busy_any_ns of {name}", device["busy_any_ns"], "span_ns", device["span_ns"]
        )
    counted = sum(device["kernels"] for device in devices.values())
    if devices and counted != trace.get("kernels"):
        yield f"the devices have {counted} kernels together, the trace {trace.get('kernels')}"


def _at_most(name: str, value: float | None, other: str, most: float | None) -> Iterator[str]:
    if value is not None and most is not None and value > most:
        yield f"{name} {value} is more than {other} {most}"


def _partition(partition: dict[str, int] | None) -> Iterator[str]:
    if partition:
        total = sum(value for name, value in partition.items() if name != "window_ns")
        if total != partition["window_ns"]:
            yield f"parts of {total} ns make a window of {partition['window_ns']} ns"


def _figures(metrics: dict[str, Any] | None) -> Iterator[str]:
    for name, figure in (metrics or {}).items():
        value, low, high = figure.get("value"), figure.get("low"), figure.get("high")
        if value is None:
            continue
        if (
            figure.get("unit") == "share"
            and not -_SLACK <= value <= _MOST_SHARE
            and name not in _BEYOND_ONE
        ):
            yield f"{name} is a share of {value}"
        if (
            figure.get("unit") in ("ns", "s", "B", "W", "J", "kernels", "items/s")
            and value < 0
            and not name.startswith(_MAY_BE_NEGATIVE)
        ):
            yield f"{name} is negative: {value}"
        slack = _SLACK * max(abs(value), 1.0)
        if low is not None and high is not None and not low - slack <= high + slack:
            yield f"{name} has an interval from {low} to {high}"


_MAY_BE_NEGATIVE = ("launch_latency", "queue_delay")
"""From one clock to another, from a launch to its kernel: a kernel that begins before its launch
shows how far they are apart, and a finding says so."""
_BEYOND_ONE = ("sum_busy",)
"""A sum over streams that run side by side."""


def _hotspots(document: dict[str, Any]) -> Iterator[str]:
    rows = document["rows"]
    total = document.get("total_ns")
    for row in rows:
        name = str(row.get("name"))[:60]
        share, calls = row.get("share"), row.get("calls")
        if share is not None and not -_SLACK <= share <= 1 + _SLACK:
            yield f"{name} has a share of {share}"
        low, mean, high = row.get("min_ns"), row.get("mean_ns"), row.get("max_ns")
        if (
            None not in (low, mean, high)
            and not low * (1 - _SLACK) - 1 <= mean <= high * (1 + _SLACK) + 1
        ):
            yield f"{name} has a mean of {mean}, not between {low} and {high}"
        if calls is not None and calls < 1:
            yield f"{name} has {calls} calls"
    summed = [row["total_ns"] for row in rows if row.get("total_ns") is not None]
    if total is not None and "by" in document and len(summed) == len(rows) and sum(summed) != total:
        yield f"rows of {sum(summed)} ns make a total of {total} ns"
    for device in ("busy_ns", "busy_any_ns"):
        yield from _at_most(
            device, document.get(device), "device_span_ns", document.get("device_span_ns")
        )

"""Series of device counters in a Kineto file: the events of phase `C` that CUPTI's PM sampling
(`hardware_counters`) and the sampler of newer torch write, on the clock of the kernels.

The process of an event names the device (`GPU 0 Counters`), its one argument is the value. What the
sampler of ours measures too has our name and unit here, anything else the name that it has in the
file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import compress
from math import isfinite

import msgspec
import numpy as np

from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto.records import Event
from profharness.trace.columns.build import Growing, Pool
from profharness.trace.model import F64, I64, Samples, Strings

CATEGORY = "hardware_counters"
CATEGORIES = (None, CATEGORY)
COLUMNS = ("at", "name", "device", "value")  # values by the bits of a float64
_PHASE = "C"
_PLACE = re.compile(r"GPU (\d+) Counters")
_UNIT = re.compile(r"\((\S+)\)\Z")
_OF_PEAK = "pct_of_peak_sustained_elapsed"
_PERCENT = 0.01
_ROUNDING = 0.01  # cycles and active cycles of one sample are not counted at one instant
_KNOWN: dict[str, tuple[str, float]] = {
    "SM Active (%)": ("sm_activity", _PERCENT),
    f"sm__cycles_active.avg.{_OF_PEAK}": ("sm_activity", _PERCENT),
    "SM Occupancy (%)": ("sm_occupancy", _PERCENT),
    f"sm__warps_active.avg.{_OF_PEAK}": ("sm_occupancy", _PERCENT),
    "Tensor Active (%)": ("tensor_activity", _PERCENT),
    f"sm__pipe_tensor_cycles_active.avg.{_OF_PEAK}": ("tensor_activity", _PERCENT),
    "HBM BW (%)": ("dram_activity", _PERCENT),
    "DRAM BW (%)": ("dram_activity", _PERCENT),
    f"dram__throughput.avg.{_OF_PEAK}": ("dram_activity", _PERCENT),
    "Power (W)": ("power_w", 1.0),
    "SM Clock (MHz)": ("clock_gpu", 1.0),
    "Memory Clock (MHz)": ("clock_memory", 1.0),
}


def among(by_category: dict[str | None, list[Event]]) -> bool:
    """Whether there are series among the events of a block."""
    return any(
        event.ph == _PHASE and _PLACE.fullmatch(str(event.pid))
        for category in CATEGORIES
        for event in by_category.get(category, ())
    )


def take(
    by_category: dict[str | None, list[Event]],
    table: Growing,
    strings: Strings,
    devices: Pool[str],
) -> int:
    """Move the series among the events of a block into the table. Gives how many of them are left
    out: they have no time, or no value that a device can have.
    """
    lost = 0
    for category in CATEGORIES:
        if category in by_category:
            events = by_category[category]
            places = [_PLACE.fullmatch(str(e.pid)) if e.ph == _PHASE else None for e in events]
            chosen = [(e, place[1]) for e, place in zip(events, places, strict=True) if place]
            if chosen:
                by_category[category] = [
                    event for event, place in zip(events, places, strict=True) if not place
                ]
                lost += len(chosen) - _add(chosen, table, strings, devices)
    return lost


def _add(
    chosen: list[tuple[Event, str]], table: Growing, strings: Strings, devices: Pool[str]
) -> int:
    """Put events and the numbers of their devices into the table; how many of them it took."""
    at = microseconds([e.ts for e, _ in chosen])
    known = [_KNOWN.get(e.name or "", (e.name or "", 1.0)) for e, _ in chosen]
    values = np.array([_value(e) for e, _ in chosen], np.float64)
    full = np.array([_full(e.name or "") for e, _ in chosen], np.float64)
    fits = at.valid & (values >= 0) & (values <= full * (1 + _ROUNDING))  # NaN is neither
    scaled = np.minimum(values, full) * np.array([factor for _, factor in known], np.float64)
    table.add(
        int(fits.sum()),
        at=at.ns[fits],
        name=[strings.code(metric) for metric, _ in compress(known, fits)],
        device=[devices[number] for _, number in compress(chosen, fits)],
        value=scaled[fits].view(np.int64),
    )
    return int(fits.sum())


def samples(table: Growing, base_ns: int, placed: Callable[[I64], I64]) -> Samples:
    """The series as samples, each an instant; the columns are used up. `placed` gives the devices'
    positions by their codes.
    """
    at: I64 = table.take("at") + base_ns
    value: F64 = table.take("value").view(np.float64)
    return Samples.build(
        at_ns=at,
        until_ns=at,
        device=placed(table.take("device")),
        metric=table.take("name"),
        value=value,
        source=0,
    )


def units(sampled: Samples, strings: Strings) -> tuple[tuple[str, str], ...]:
    """The units of counters that are no metric of ours, where their names state them."""
    ours = {metric for metric, _ in _KNOWN.values()}
    names = {strings[code] for code in np.unique(sampled.metric).tolist()} - ours
    stated = ((name, "%" if name.endswith(_OF_PEAK) else _stated(name)) for name in sorted(names))
    return tuple((name, unit) for name, unit in stated if unit)


def _stated(name: str) -> str:
    match = _UNIT.search(name)
    return "" if match is None else match[1]


def _full(name: str) -> float:
    """The most that a counter can show, as the file writes it."""
    return 100.0 if name.endswith(_OF_PEAK) or _stated(name) == "%" else np.inf


def _value(event: Event) -> float:
    """The one value of an event; NaN where it has another form."""
    try:
        args = msgspec.json.decode(event.args, type=dict[str, float])
    except NOT_JSON:
        return np.nan
    value = next(iter(args.values())) if len(args) == 1 else np.nan
    return value if isfinite(value) else np.nan

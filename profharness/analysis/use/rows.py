"""Rows of operators and of kernels against the ceilings (docs/metrics.md#device-use)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.device_time import lasting
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.sums import (
    LIMITERS,
    at_the_ceilings,
    limits_of,
    operator_sums,
    row_fields,
)
from profharness.analysis.time.timeline import is_communication
from profharness.analysis.use.records import UseRow
from profharness.trace.columns.keys import coded, first_rows, pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Reached:
    """Per group: FLOP/s, bytes per second, FLOP per byte; NaN where not known."""

    flops_per_s: F64
    bytes_per_s: F64
    intensity: F64

    @classmethod
    def of(cls, group: I64, groups: int, work: tuple[F64, F64], ns: I64) -> _Reached:
        """From the operations, bytes and time in ns of each member of a group; those that took no
        time are left out.
        """
        flops, moved = work

        def total(values: F64, rows: Mask) -> F64:
            whole = np.bincount(group[rows], weights=values[rows], minlength=groups)
            return whole.astype(np.float64)

        with_flops, with_bytes = (np.isfinite(part) & (ns > 0) for part in work)
        both, seconds = with_flops & with_bytes, ns / 1e9
        with np.errstate(divide="ignore", invalid="ignore"):  # no time, no bytes: not known
            return cls(
                total(flops, with_flops) / total(seconds, with_flops),
                total(moved, with_bytes) / total(seconds, with_bytes),
                total(flops, both) / total(moved, both),
            )

    def at(self, place: int) -> dict[str, Any]:
        columns = {
            "flops_per_s": self.flops_per_s,
            "bytes_per_s": self.bytes_per_s,
            "intensity": self.intensity,
        }
        return {name: _known(float(column[place])) for name, column in columns.items()}


def _known(value: float) -> float | None:
    return value if np.isfinite(value) and value > 0 else None


def operator_rows(facts: KernelFacts, device_ns: int, *, shapes: bool) -> tuple[UseRow, ...]:
    """Operators by name, or by name, shapes and types of their inputs: those that have device time
    of their own. `device_ns` is the device time of the whole pass.
    """
    trace, rows = facts.trace, facts.operators
    assert rows is not None
    ops = trace.ops
    columns = (ops.name, ops.shapes, ops.dtype) if shapes else (ops.name,)
    first, group = first_rows(pack(columns))
    groups = len(first)
    sums = operator_sums(facts, group, groups)
    counted = np.isfinite(rows.flops) | np.isfinite(rows.low_bytes)
    worked = at_the_ceilings(facts, counted)[0]
    timed = np.where(counted, worked, 0) if facts.timed else np.zeros(len(ops), np.int64)
    reached = _Reached.of(group, groups, (rows.flops, rows.low_bytes), timed)
    inner = _limits_inside(facts, counted, group, groups)
    calls = np.bincount(group, minlength=groups)
    found = []
    places = np.flatnonzero((sums.device > 0) | (sums.worked > 0))
    for place, shown in zip(places.tolist(), row_fields(sums, places), strict=True):
        # where operators inside do the work (attention), the row's time is that of the work
        own = int(max(sums.device[place], sums.worked[place]))
        found.append(
            UseRow(
                name=trace.strings[int(ops.name[first[place]])],
                calls=int(calls[place]),
                device_ns=own,
                share=own / device_ns if device_ns else 0.0,
                shapes=_text(trace, int(ops.shapes[first[place]])) if shapes else "",
                dtypes=_text(trace, int(ops.dtype[first[place]])) if shapes else "",
                peak_share=shown["peak_share"],
                limiter=shown["limiter"] or _limiter(inner[place]),
                excess_ns=shown["excess_ns"],
                **reached.at(place),
            )
        )
    return _ranked(found)


def _limits_inside(facts: KernelFacts, counted: Mask, group: I64, groups: int) -> I64:
    """Kernel time by limiter of the groups whose known work the kernels do, themselves or through
    operators nested in them.
    """
    trace = facts.trace
    holder = nests(trace.ops).nearest(counted)
    rows = np.flatnonzero(trace.kernels.op != NULL)
    owner = holder[trace.kernels.op[rows]]
    return limits_of(facts, rows[owner != NULL], group[owner[owner != NULL]], groups)


def _limiter(limits: I64) -> str | None:
    return LIMITERS[int(np.argmax(limits))] if limits.any() else None


def _text(trace: Trace, code: int) -> str:
    return "" if code == NULL else trace.strings[code]


def kernel_rows(facts: KernelFacts, device_ns: int) -> tuple[UseRow, ...]:
    """Kernels by name; collectives are left out."""
    trace, rates = facts.trace, facts.rates
    if not facts.timed:
        return ()
    rows = np.flatnonzero(~is_communication(trace.strings, trace.kernels))
    codes, group = coded(trace.kernels.name[rows])
    groups, ns = len(codes), lasting(trace.kernels)[rows]
    reached = _Reached.of(group, groups, (rates.flops[rows], rates.moved[rows]), ns)
    limits = limits_of(facts, rows, group, groups)
    by_flops, by_bytes = (
        _least(share[rows], ns, group, groups)
        for share in (rates.compute_share, rates.bandwidth_share)
    )
    judged = np.isfinite(rates.compute_share[rows]) | np.isfinite(rates.bandwidth_share[rows])
    worked = np.bincount(group, weights=np.where(judged, ns, 0), minlength=groups)
    # per call the larger of the two, then summed: a kernel may be near either ceiling
    nearer = np.fmax(rates.compute_share[rows], rates.bandwidth_share[rows])
    least = _least(nearer, ns, group, groups)
    calls = np.bincount(group, minlength=groups)
    total = np.bincount(group, weights=ns, minlength=groups).astype(np.int64)
    found = []
    for place, code in enumerate(codes.tolist()):
        measured = worked[place] > 0 and least[place] > 0
        nearest = max(by_flops[place], by_bytes[place])
        found.append(
            UseRow(
                name=trace.strings[code],
                calls=int(calls[place]),
                device_ns=int(total[place]),
                share=int(total[place]) / device_ns if device_ns else 0.0,
                peak_share=float(min(nearest / worked[place], 1.0)) if measured else None,
                limiter=_limiter(limits[place]),
                excess_ns=float(max(worked[place] - least[place], 0.0)) if measured else None,
                **reached.at(place),
            )
        )
    return _ranked(found)


def _least(share: F64, ns: I64, group: I64, groups: int) -> F64:
    """Per group the least time in ns that its share of a ceiling allows."""
    known = np.isfinite(share)
    weights = share[known] * ns[known]
    return np.bincount(group[known], weights=weights, minlength=groups).astype(np.float64)


def _ranked(rows: Sequence[UseRow]) -> tuple[UseRow, ...]:
    """Those with the most excess first, then those without any by device time."""
    return tuple(sorted(rows, key=lambda row: (-(row.excess_ns or 0.0), -row.device_ns, row.name)))

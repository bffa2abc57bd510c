"""What the executions of a searched scan came to, as its search takes them. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from profharness.rundir.executions.axes import Requirement
from profharness.rundir.manifest import PointRecord
from profharness.scans.settings_search import Measured

_SCATTER = 0.03
"""Of one execution, until settings that were executed again tell: it counts as one of them."""
_OVER = 0.5
"""How far a setting that fails, or does not keep what is required, is taken to miss that, as a
logarithm; others keep it by as much."""
_OVER_SIGMA = 0.3


def measured_of(
    records: Sequence[PointRecord], places: Mapping[str, int], requires: Sequence[Requirement]
) -> tuple[Measured, ...]:
    """One for each execution, in their order; `places` are those of the settings by id."""
    rates = [_log_rate(record) for record in records]
    told = bool(requires) or any(rate is None for rate in rates)
    sigma = scatter(
        (record.id, rate) for record, rate in zip(records, rates, strict=True) if rate is not None
    )
    return tuple(
        Measured(
            places[record.id],
            rate,
            sigma,
            (_OVER if rate is None or _misses(record, requires) else -_OVER) if told else None,
            _OVER_SIGMA,
        )
        for record, rate in zip(records, rates, strict=True)
    )


def scatter(rates: Iterator[tuple[str, float]]) -> float:
    """The standard deviation of one execution around its setting, in logarithms."""
    by_setting: dict[str, list[float]] = {}
    for name, rate in rates:
        by_setting.setdefault(name, []).append(rate)
    squares, freedom = _SCATTER**2, 1
    for values in by_setting.values():
        mean = sum(values) / len(values)
        squares += sum((value - mean) ** 2 for value in values)
        freedom += len(values) - 1
    return math.sqrt(squares / freedom)


def _log_rate(record: PointRecord) -> float | None:
    rate = None if record.execution is None else record.execution.rate
    return math.log(rate) if record.state == "ok" and rate is not None and rate > 0 else None


def _misses(record: PointRecord, requires: Sequence[Requirement]) -> bool:
    """Whether an execution that ended well misses anything that is required."""
    values = {} if record.execution is None else record.execution.values
    return not all(one.name in values and one.holds(values[one.name]) for one in requires)

"""Quantities of the records as text: value, unit and uncertainty, and the words for what is
missing.
"""

from __future__ import annotations

from collections.abc import Callable

from profharness.analysis.records import Estimate, Figure

# reports find these here, with the rest of the words
from profharness.units import NOT_MEASURED as NOT_MEASURED  # noqa: PLC0414  for reports
from profharness.units import (
    digits_for,
    format_bytes,
    format_ns,
    format_number,
    format_share,
    format_share_interval,
    format_share_range,
    format_with_uncertainty,
)
from profharness.units import finite as finite  # noqa: PLC0414  for reports
from profharness.units import half_width as half_width  # noqa: PLC0414  for reports

_NS_PER = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SI_UNITS = frozenset({"FLOP", "FLOP/s", "B/s", "bit/s", "Hz"})
_ONE = {
    "processes": "process",
    "trials": "trial",
    "kernels": "kernel",
    "streams": "stream",
    "items": "item",
    "requests": "request",
    "clients": "client",
}
_SHARES = frozenset({"share", "fraction"})
_FRACTIONS = frozenset({"", "1", "ratio"})


def needs_text(needs: str) -> str:
    """`not measured: needs power`, or `not measured` where nothing is known to help."""
    return f"{NOT_MEASURED}: needs {needs}" if needs else NOT_MEASURED


def figure_text(figure: Figure | None, *, interval: bool = True) -> str:
    """A figure with unit and, where `interval`, its half-width or ends (`750 steps/s (365 steps/s
    or more)` where it is bounded on one side); `8.0 to 92.0 %` where only ends are known, and `not
    measured: needs X` without any.
    """
    if figure is None:
        return NOT_MEASURED
    value = finite(figure.value)
    if value is None:
        return range_text(figure) or needs_text(figure.needs)
    if not interval or figure.low is None or figure.high is None:
        known = quantity_text(value, figure.unit)
        return f"{known} ({_bound_text(figure)})" if interval and _one_ended(figure) else known
    half = half_width(value, figure.low, figure.high)
    if half is not None and _lopsided(value, figure.low, figure.high):
        shown, *ends = (quantity_text(one, figure.unit) for one in (value, figure.low, figure.high))
        return shown if {*ends} == {shown} else f"{shown} ({ends[0]} to {ends[1]})"
    return quantity_text(value, figure.unit, half or None)


def is_known(figure: Figure | None) -> bool:
    """Whether it has a value, or ends between which it lies."""
    return figure is not None and (finite(figure.value) is not None or bool(range_text(figure)))


def range_text(figure: Figure) -> str:
    """`8.0 to 92.0 %`, or `8.0 % or more`, of a figure of which only ends are known; else empty."""
    if not figure.is_range:
        return ""
    low, high = finite(figure.low), finite(figure.high)
    if low is None or high is None:
        return _bound_text(figure)
    if figure.unit in _SHARES:
        return format_share_range(low, high)
    return f"{quantity_text(low, figure.unit)} to {quantity_text(high, figure.unit)}"


def _one_ended(figure: Figure) -> bool:
    return (finite(figure.low) is None) != (finite(figure.high) is None)


def _bound_text(figure: Figure) -> str:
    """`365 steps/s or more`, of an interval that has one end."""
    low, high = finite(figure.low), finite(figure.high)
    if low is not None:
        return f"{quantity_text(low, figure.unit)} or more"
    return "" if high is None else f"{quantity_text(high, figure.unit)} or less"


def interval_text(value: float, low: float | None, high: float | None) -> str:
    """A bare number with its interval: `24 281 ± 97`, `146 (0 to 318)` where ± would mislead, or
    the number alone.
    """
    half = half_width(value, low, high)
    if half and low is not None and high is not None and _lopsided(value, low, high):
        return f"{brief_text(value, 3)} ({brief_text(low, 3)} to {brief_text(high, 3)})"
    return format_with_uncertainty(value, half)


def times_text(ratio: float, low: float | None = None, high: float | None = None) -> str:
    """One figure over another: `1.234 ± 0.041 times`."""
    return f"{interval_text(ratio, low, high)} times"


def _lopsided(value: float, low: float, high: float) -> bool:
    """Whether ± would mislead: one arm of the interval is more than three times the other, or the
    half-width exceeds the value.
    """
    short, long = sorted((value - low, high - value))
    return long > 3 * short or (value > 0 and high - low >= 2 * value)


def quantity_text(value: float, unit: str, half: float | None = None) -> str:
    """`value` in its natural scale with `unit`, and `± half` in the same scale."""
    if unit in _NS_PER:
        return _time_text(value * _NS_PER[unit], None if half is None else half * _NS_PER[unit])
    if unit in _ALONE:
        return _ALONE[unit](value, unit)
    if unit in _SHARES:
        return share_text(value, half)
    if unit in _FRACTIONS:
        return fraction_text(value) if half is None else number_text(value, half)
    if unit == "cores" and half is None:
        return f"{brief_text(value, 3)} {unit}"
    return f"{number_text(value, half)} {singular(unit) if value == 1 and half is None else unit}"


def singular(unit: str) -> str:
    """The unit of exactly one: `process`, `trial`; other units as they are."""
    return _ONE.get(unit, unit)


def number_text(value: float, half: float | None = None) -> str:
    """A bare number: digits by its uncertainty, whole counts whole, four significant digits
    otherwise.
    """
    if half is None and float(value).is_integer() and abs(value) < 1e15:
        return format_number(value)
    return format_with_uncertainty(value, half)


def brief_text(value: float, significant: int = 4) -> str:
    """Four significant digits without trailing zeros, whole above a thousand: `6.9`, `478.8`, `1
    950`.
    """
    if abs(value) >= 1000:
        return format_number(value)
    return f"{float(f'{value:.{significant}g}'):.10f}".rstrip("0").rstrip(".")


def cores_text(value: float) -> str:
    """Cores in use with one decimal, as in `0.5 of 2`; two significant digits below a tenth of a
    core.
    """
    return f"{value:.1f}" if value == 0 or value >= 0.1 else brief_text(value, 2)


def fraction_text(value: float | None) -> str:
    """A share between 0 and 1 with two decimals, as in `fill 0.81`; two significant digits below
    0.01, and with an exponent where ten decimals would not show them.
    """
    shown = finite(value)
    if shown is None:
        return ""
    if 0 < abs(shown) < 1e-8:
        return f"{shown:.2g}"
    return (
        f"{shown:.2f}"
        if shown == 0 or abs(shown) >= 0.01
        else f"{float(f'{shown:.2g}'):.10f}".rstrip("0")
    )


def share_text(share: float, half: float | None = None) -> str:
    """A share of the whole in per cent, with its half-width where that is known: `93.0 %`,
    `3.1 % ± 0.4`; two significant digits below one per cent, so that `0.0018 %` is not nothing.
    """
    if half:
        return format_share_interval(share, share - half, share + half)
    if share == 0:
        return "0 %"
    if abs(share) < 0.01:
        return f"{brief_text(100 * share, 2)} %" if abs(share) >= 1e-10 else f"{100 * share:.2g} %"
    text = format_share(share)
    return "100 %" if text == "100.0 %" else text


def si_text(value: float, unit: str, significant: int = 3) -> str:
    """`1.31 TFLOP/s`, `24.4 k jets/s`: a decimal prefix, joined to units of the SI and apart from
    counted things.
    """
    for factor, prefix in _SI:
        if abs(value) >= factor:
            digits = max(significant - len(str(int(abs(value) / factor))), 0)
            return (
                f"{format_number(value / factor, digits)} "
                f"{prefix}{'' if unit in _SI_UNITS else ' '}{unit}"
            )
    digits = 0 if float(value).is_integer() else max(significant - len(str(int(abs(value)))), 0)
    return f"{format_number(value, digits)} {unit}"


def _bytes_text(value: float, _unit: str) -> str:
    return format_bytes(value)


# units whose figures are printed without their uncertainty
_ALONE: dict[str, Callable[[float, str], str]] = {
    "B": _bytes_text,
    "bytes": _bytes_text,
    **dict.fromkeys(_SI_UNITS, si_text),
}


def _time_text(ns: float, half_ns: float | None) -> str:
    if half_ns is None or half_ns <= 0:
        return format_ns(ns)
    for name in ("s", "ms", "µs", "ns"):
        factor = _NS_PER[name]
        if abs(ns) >= factor or name == "ns":
            digits = digits_for(half_ns / factor)
            return (
                f"{format_number(ns / factor, digits)} ± "
                f"{format_number(half_ns / factor, digits)} {name}"
            )
    raise AssertionError("the last scale always matches")


def percent_text(estimate: Estimate) -> str:
    """A share with its interval in per cent, as overheads are printed: `3.1 % ± 0.4`."""
    return format_share_interval(estimate.value, estimate.low, estimate.high)


def estimate_text(estimate: Estimate) -> str:
    """A fitted value with its ends, an end that the data do not bound being said: `251 (238 to
    270)`.
    """
    value = finite(estimate.value)
    if value is None:
        low = finite(estimate.low)
        return "not reached in this scan" if low is None else f"above {number_text(low)}"
    low, high = finite(estimate.low), finite(estimate.high)
    if low is None and high is None:
        return brief_text(value)
    ends = f"{_end(low)} to {_end(high)}"
    return f"{brief_text(value)} ({ends})"


def _end(value: float | None) -> str:
    return "open" if value is None else brief_text(value)


def coverage_text(figure: Figure) -> str:
    """How much of what the figure is about it rests on; empty where that is not said."""
    if figure.coverage is None:
        return ""
    return f"covers {100 * figure.coverage:.0f} % of {figure.coverage_of}"


def figure_tip(figure: Figure | None, meaning: str = "") -> str:
    """Provenance of a figure for a tooltip: meaning, interval, where it came from, coverage,
    note.
    """
    if figure is None:
        return meaning
    parts = [meaning] if meaning else []
    if (
        finite(figure.value) is not None
        and half_width(float(figure.value or 0), figure.low, figure.high) is not None
    ):
        assert figure.low is not None
        assert figure.high is not None
        parts.append(
            f"95 % interval {quantity_text(figure.low, figure.unit)} to "
            f"{quantity_text(figure.high, figure.unit)}"
        )
    if figure.source:
        parts.append(f"from {figure.source}")
    if figure.coverage is not None:
        parts.append(coverage_text(figure))
    if figure.note:
        parts.append(figure.note)
    if not is_known(figure):
        parts.append(needs_text(figure.needs))
    return "; ".join(parts)


_SUFFIX_UNITS = {"percent": "%", "w": "W", "mhz": "MHz", "j": "J", "c": "°C"}


def suffixed_text(name: str, value: float | str) -> str:
    """A finding's figure by the unit suffix of its name: `residual_ns` 1900 reads `residual 1.900
    µs`.
    """
    stem, _, suffix = name.rpartition("_")
    if not stem or isinstance(value, str):
        return f"{name.replace('_', ' ')} {value if isinstance(value, str) else brief_text(value)}"
    return _suffixed(stem.replace("_", " "), suffix, value)


def _suffixed(label: str, suffix: str, value: float) -> str:
    if suffix in _NS_PER:
        return f"{label} {_time_text(value * _NS_PER[suffix], None)}"
    if suffix == "bytes":
        return f"{label} {format_bytes(value)}"
    if suffix in {"share", "fraction"}:
        return f"{label} {format_share(value)}"
    if suffix in _SUFFIX_UNITS:
        return f"{label} {brief_text(value)} {_SUFFIX_UNITS[suffix]}"
    return f"{label} {suffix} {brief_text(value)}"

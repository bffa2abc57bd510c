"""Parse and print quantities: times, bytes, power, energy, counts, values with uncertainty.

Thousands are parted by thin spaces (U+2009) and digits follow the uncertainty, as the field prints
them.
"""

from __future__ import annotations

import math
import re

from profharness.errors import UsageError

THIN = "\u2009"
NOT_MEASURED = "not measured"
# Sums of shares end this close to the whole by rounding alone.
_WHOLE = 1e-9
_TWO_DIGITS = 100  # a whole number from here on has more than two
_TIME_SCALES = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))
_DURATIONS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_HISSES = ("s", "x", "ch", "sh")
"""How items end whose plural takes a syllable more."""
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def finite(value: float | None) -> float | None:
    """`value` when it is a number that can be printed, else None."""
    return None if value is None or not math.isfinite(value) else value


def half_width(value: float, low: float | None, high: float | None) -> float | None:
    """Half the interval when it is closed and sits around `value`, for a ± figure."""
    if (
        finite(low) is None
        or finite(high) is None
        or low is None
        or high is None
        or not low <= value <= high
    ):
        return None
    return (high - low) / 2


def several(item: str) -> str:
    """`jets` of jet, `batches` of batch: what a rate counts."""
    return f"{item}es" if item.endswith(_HISSES) else f"{item}s"


def one_of(items: str) -> str:
    """`jet` of jets, `batch` of batches, `phrase` of phrases."""
    short = items.removesuffix("es")
    return short if short.endswith(("ss", *_HISSES[1:])) else items.removesuffix("s")


def of_cores(count: int) -> str:
    """`1 core`, `4 cores`."""
    return f"{count} core{'' if count == 1 else 's'}"


def format_number(value: float, digits: int = 0) -> str:
    """`value` with `digits` decimals and thin spaces between thousands."""
    return f"{value:,.{digits}f}".replace(",", THIN)


def digits_for(uncertainty: float) -> int:
    """Decimals that keep two significant digits of `uncertainty` (at least 0, at most 6)."""
    if uncertainty <= 0 or not math.isfinite(uncertainty):
        return 3
    return min(max(1 - math.floor(math.log10(uncertainty)), 0), 6)


def format_with_uncertainty(value: float, uncertainty: float | None) -> str:
    """`24 331 ± 41`, `149 000 ± 45 000`: as many digits as the uncertainty allows, whose first two
    are significant; without one, four significant digits.
    """
    if not math.isfinite(value):
        return NOT_MEASURED
    if uncertainty is None or not math.isfinite(uncertainty) or uncertainty <= 0:
        digits = max(3 - math.floor(math.log10(abs(value))), 0) if value else 0
        return format_number(value, min(digits, 6))
    digits = digits_for(uncertainty)
    if uncertainty >= _TWO_DIGITS:
        value, uncertainty = (_rounded(one, like=uncertainty) for one in (value, uncertainty))
    return f"{format_number(value, digits)} ± {format_number(uncertainty, digits)}"


def _rounded(value: float, like: float) -> float:
    """`value` to the place of the second significant digit of `like`."""
    return round(value, 1 - math.floor(math.log10(like)))


def format_ns(ns: float, significant: int = 4) -> str:
    """A duration in its natural scale: `1.70 ms`, `118.3 µs`, `412 ns`."""
    for factor, name in _TIME_SCALES:
        if abs(ns) >= factor or factor == 1:
            scaled = ns / factor
            whole = len(str(int(abs(scaled))))
            return (
                f"{format_number(scaled, 0 if factor == 1 else max(significant - whole, 0))} {name}"
            )
    raise AssertionError("the last scale always matches")


def format_exact_ns(ns: int) -> str:
    """A time as a person would have given it, nothing rounded: `1.5 s`, `250 ms`, `0 s`."""
    factor, name = (
        next(scale for scale in _TIME_SCALES if abs(ns) >= scale[0] or scale[0] == 1)
        if ns
        else _TIME_SCALES[0]
    )
    return f"{ns / factor:.15g} {name}"


def format_bytes(count: float) -> str:
    """Binary multiples with one decimal: `240.0 MiB`."""
    scaled = float(count)
    for name in _BINARY:
        if abs(scaled) < 1024 or name == _BINARY[-1]:
            return f"{format_number(scaled, 0 if name == 'B' else 1)} {name}"
        scaled /= 1024
    raise AssertionError("the last unit always matches")


def format_share(share: float, digits: int = 1) -> str:
    """A share between 0 and 1 as per cent; one that rounding alone would make the whole reads `>
    99.9 %`.
    """
    text = f"{100 * share:.{digits}f}"
    if share < 1 - _WHOLE and float(text) >= 100:
        return f"> {100 - 10.0**-digits:.{digits}f} %"
    return f"{text} %"


def format_share_range(low: float, high: float, digits: int = 1) -> str:
    """`8.0 to 92.0 %`: a share of which only the ends are known; one share where they look the
    same.
    """
    ends = format_share(low, digits), format_share(high, digits)
    return ends[0] if ends[0] == ends[1] else f"{ends[0].removesuffix(' %')} to {ends[1]}"


def format_share_interval(share: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval in per cent, as overheads are printed: `3.1 % ± 0.4`; `not
    measured` without a value.
    """
    value = finite(share)
    if value is None:
        return NOT_MEASURED
    half = half_width(value, low, high)
    if not half:
        return format_share(value)
    digits = max(digits_for(100 * half) - 1, 1) if 100 * half < 10 else 0
    return f"{100 * value:.{digits}f} % ± {100 * half:.{digits}f}"


def format_clock(seconds: float) -> str:
    """Minutes and seconds for progress and plans: `0:58`, `12:04`."""
    whole = round(seconds)
    return f"{whole // 60}:{whole % 60:02d}"


def parse_duration_ns(text: str, option: str) -> int:
    """`30s`, `1.5ms`, `2min`, or a bare number of seconds, in ns. Raises UsageError naming
    `option`.
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)\s*", text)
    unit = match.group(2) or "s" if match else ""
    if match is None or unit not in _DURATIONS:
        raise UsageError(
            f"{option}: {text!r} is not a duration",
            "write a number with a unit, such as 30s, 250ms or 2min",
        )
    return round(float(match.group(1)) * _DURATIONS[unit])


def parse_counts(text: str, option: str) -> tuple[int, ...]:
    """`1,4,16`, `4..2048` (doubling) or `120..132:4` (in steps of 4), as positive integers. Raises
    UsageError naming `option`.
    """
    values: list[int] = []
    for part in text.split(","):
        span, colon, step = part.strip().partition(":")
        ends = span.split("..")
        if (
            len(ends) > 2
            or not all(
                end.isdigit() and int(end) > 0 for end in (*ends, *((step,) if colon else ()))
            )
            or (colon and len(ends) == 1)
        ):
            raise UsageError(
                f"{option}: {part.strip()!r} is not a positive number or a range",
                "write a list such as 1,4,16, powers of two such as 4..2048, "
                "or steps such as 120..132:4",
            )
        if len(ends) == 1:
            values.append(int(ends[0]))
            continue
        low, high = int(ends[0]), int(ends[1])
        if low > high:
            raise UsageError(f"{option}: the range {part.strip()} is empty", f"write {high}..{low}")
        while low <= high:
            values.append(low)
            low = low + int(step) if step else 2 * low
    if len(set(values)) != len(values):
        raise UsageError(f"{option}: a value stands twice in {text!r}", "name each value once")
    return tuple(values)

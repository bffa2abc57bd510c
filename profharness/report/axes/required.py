"""The figures that a scan over axes requires of its points, in words: `p99_ms <= 20`, as one asks
for it, is `latency p99 <= 20 ms` to its reader.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from profharness.analysis.axes.records import AxesScan
from profharness.report.text.figures import quantity_text

_LATENCY = re.compile(r"(p\d+|mean)_ms")


def required_names(scan: AxesScan) -> tuple[str, ...]:
    """The figures of the script that its points gave, those that are required first."""
    asked = [text.split()[0] for text in scan.requires]
    given = [name for point in scan.points for name in point.values]
    return tuple(dict.fromkeys((*asked, *given)))


def figure_name(name: str) -> str:
    """`latency p99` of `p99_ms`; a figure of a script by its own name."""
    latency = _LATENCY.fullmatch(name)
    return f"latency {latency[1]}" if latency else name


def meaning_of_server(name: str) -> str:
    """What the column of a server's figure holds; empty of a figure that is no latency."""
    if not _LATENCY.fullmatch(name):
        return ""
    return "from when a request was due to its answer, mean over the levels; limits are held to it"


def figure_value(name: str, value: float) -> str:
    """`22.64 ms` of a latency; a figure of a script to four digits."""
    return quantity_text(value, "ms") if _LATENCY.fullmatch(name) else f"{value:.4g}"


def required_text(requires: Iterable[str]) -> str:
    """`latency p99 <= 20 ms and accuracy >= 0.7`."""
    return " and ".join(map(_one, requires))


def _one(text: str) -> str:
    name, rest = text.split(maxsplit=1)
    return f"{figure_name(name)} {rest}{' ms' if _LATENCY.fullmatch(name) else ''}"

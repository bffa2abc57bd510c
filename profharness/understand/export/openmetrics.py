"""The metrics of a run or of trace files as OpenMetrics text, for Prometheus and what reads its
format (https://prometheus.io/docs/specs/om/open_metrics_spec/).

A metric is a gauge `profharness_NAME_UNIT`, with the ends of its interval as
`profharness_NAME_low_UNIT` and `..._high_UNIT`. Samples of a point have its settings as labels,
those of the whole have none of these. What was not measured has no sample. Those of a run have its
end as their time, since databases take nothing without one; `series` adds its telemetry.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from profharness.analysis.records import PointSummary, Summary
from profharness.report.text.names import meaning_of, title_of
from profharness.understand.export.lines import head_of, labels_of

_UNITS = {
    "%": "percent",
    "°C": "celsius",
    "share": "ratio",
    "ns": "nanoseconds",
    "us": "microseconds",
    "µs": "microseconds",
    "ms": "milliseconds",
    "s": "seconds",
    "W": "watts",
    "J": "joules",
    "B": "bytes",
    "FLOP": "flop",
    "MHz": "megahertz",
    "GHz": "gigahertz",
}
_SETTINGS = ("backend", "batch_size", "concurrency", "processes", "mode", "rate")


@dataclass
class _Family:
    """The samples of one name: lines of text, in order."""

    unit: str
    help: str
    lines: list[str] = field(default_factory=list)


EOF = "# EOF\n"


def openmetrics_text(summary: Summary) -> str:
    """All of it, with the end that the format asks for."""
    return summary_text(summary) + EOF


def summary_text(summary: Summary, at_ns: int | None = None) -> str:
    """All measured metrics of the whole and of the points, and the kind of the verdict. `at_ns` is
    the time of all of them, since 1970; without it they have none.
    """
    stamp = "" if at_ns is None else f" {at_ns // 10**9}.{at_ns // 10**6 % 1000:03d}"
    families: dict[str, _Family] = {}
    of: dict[str, str] = {}
    for labels, name, end, value, unit in _samples(summary):
        family = _name(of, f"{name}{end}", unit)
        text = title_of(name) + (f", {end[1:]} end of its 95 % interval" if end else "")
        meaning = meaning_of(name)
        known = families.setdefault(
            family, _Family(_unit(unit), f"{text}: {meaning}" if meaning else text)
        )
        known.lines.append(f"{family}{labels} {value!r}{stamp}\n")
    out = [
        head_of(family, "gauge", held.unit, held.help) + "".join(held.lines)
        for family, held in families.items()
    ]
    if summary.verdict is not None:
        told = labels_of({"source": summary.source, "kind": summary.verdict.kind})
        out.append(head_of("profharness_verdict", "info", "", "what holds the whole back"))
        out.append(f"profharness_verdict_info{told} 1{stamp}\n")
    return "".join(out)


def _samples(summary: Summary) -> Iterator[tuple[str, str, str, float, str]]:
    """Labels, metric, end (empty for the value itself), value and unit."""
    of_all = [
        (labels_of({"source": summary.source}), summary.metrics),
        *(
            (labels_of({"source": summary.source, **_settings(point)}), point.metrics)
            for point in _distinct(summary)
        ),
    ]
    for labels, metrics in of_all:
        for name, figure in metrics.items():
            for end, value in (("", figure.value), ("_low", figure.low), ("_high", figure.high)):
                if value is not None and math.isfinite(value):
                    yield labels, name, end, float(value), figure.unit


def _distinct(summary: Summary) -> Iterator[PointSummary]:
    """Points by their ids: a second one of the same id would be a second sample of one series."""
    yield from {point.point: point for point in summary.points}.values()


def _settings(point: PointSummary) -> dict[str, object]:
    given = {name: getattr(point, name) for name in _SETTINGS}
    return {
        "point": point.point,
        **{name: value for name, value in given.items() if value not in (None, "")},
    }


def _name(of: dict[str, str], name: str, unit: str) -> str:
    """The name of a family, which ends in its unit. Two metrics whose names differ in letters only
    that such a name cannot hold are told apart by a number.
    """
    key = f"{name} {unit}"
    if key not in of:
        stem = "profharness_" + re.sub(r"[^a-zA-Z0-9_]+", "_", name).strip("_")
        ending = f"_{_unit(unit)}" if unit else ""
        stem = stem.removesuffix(ending) if ending else stem  # steps_per_second in steps/s
        taken = set(of.values())
        tries = [f"{stem}{ending}", *(f"{stem}_{n}{ending}" for n in range(2, len(of) + 3))]
        of[key] = next(one for one in tries if one not in taken)
    return of[key]


def _unit(unit: str) -> str:
    parts = [_UNITS.get(part, part) for part in unit.split("/")]
    parts[1:] = [part.removesuffix("s") for part in parts[1:]]  # items per second
    return re.sub(r"[^a-zA-Z0-9_]+", "_", "_per_".join(parts)).strip("_")

"""Which points of a run belong to which of its series, found for all series at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary

_FIELDS = frozenset(PointSummary.__struct_fields__)


def members(
    points: Iterable[PointSummary], curves: Sequence[Series], *, blank_is_any: bool = False
) -> list[list[PointSummary]]:
    """Of each series the points that have its key's values, in their order; open loops belong to
    none. With `blank_is_any` an empty value of a key asks for nothing.

    Each point is looked at once for each set of names that the keys have, not once for each series.
    """
    closed = [point for point in points if point.rate is None]
    sorted_in: dict[tuple[str, ...], dict[tuple[str, ...], list[PointSummary]]] = {}
    found = []
    for curve in curves:
        asked = tuple(
            name
            for name, value in curve.key.items()
            if name in _FIELDS and (value or not blank_is_any)
        )
        if asked not in sorted_in:
            sorted_in[asked] = _by_values(closed, asked)
        found.append(sorted_in[asked].get(tuple(curve.key[name] for name in asked), []))
    return found


def _by_values(
    points: Iterable[PointSummary], names: Sequence[str]
) -> dict[tuple[str, ...], list[PointSummary]]:
    groups: dict[tuple[str, ...], list[PointSummary]] = {}
    for point in points:
        groups.setdefault(tuple(str(getattr(point, name)) for name in names), []).append(point)
    return groups

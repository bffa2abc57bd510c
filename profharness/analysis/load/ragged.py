"""How full batches of requests of different lengths were, way by way. Pure.

Executions and requests are counted by the server's statistics and, where Triton runs the model
itself, by the model's own records; answers were compared by the load generator.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from profharness.analysis.load.ragged_records import Answers, RaggedWay
from profharness.analysis.load.run_levels import Levels
from profharness.analysis.load.sharing import shared_levels
from profharness.analysis.load.sharing_records import SharedLevel
from profharness.analysis.records import PointSummary
from profharness.findings import Finding, finding
from profharness.rundir.levels import Level
from profharness.rundir.manifest import PointRecord
from profharness.stats.estimate import Estimate
from profharness.stats.throughput import Drift

WAY = "ragged"
WAYS = ("none", "padded", "grouped", "triton")


def of_levels(
    points: Sequence[PointSummary],
    records: Sequence[PointRecord],
    levels: Levels,
    reference: str,
    drifts: Mapping[str, Drift],
) -> dict[str, tuple[SharedLevel, ...] | tuple[RaggedWay, ...]]:
    """What levels of the reference pass say beside their figures, by the field of the summary."""
    own = [record for record in records if record.pass_name == reference and not record.repeat]
    return {
        "sharing": shared_levels(points, levels, reference, drifts),
        "ragged": ragged_ways(points, own, levels, reference),
    }


def ragged_ways(
    points: Sequence[PointSummary],
    records: Sequence[PointRecord],
    levels: Levels,
    reference: str,
) -> tuple[RaggedWay, ...]:
    """The levels of a scan with ragged requests, in the points' order; `none` stands among them
    where it was compared. Empty without any.
    """
    by_id = {record.id: record for record in records}
    if not any(WAY in record.notes for record in records):
        return ()
    found = []
    for point in points:
        record = by_id.get(point.point)
        way = None if record is None else _way(record)
        if record is not None and way is not None:
            level = levels.get((reference, point.point))
            found.append(_measured(point, record, way, None if level is None else level.level))
    return tuple(found)


def _way(record: PointRecord) -> str | None:
    """The way of a level: the load generator notes it, but for `none`, which only a label among
    several ways tells.
    """
    told = record.notes.get(WAY)
    return told or ("none" if record.backend.endswith(("@none", ".none")) else None)


def _measured(point: PointSummary, record: PointRecord, way: str, level: Level | None) -> RaggedWay:
    notes = record.notes
    # of several models at once a note holds a word for each, which is no number
    counts = {name: value for name, text in notes.items() if (value := _number(text)) is not None}
    executions, requests, items = _executed(level)
    own = counts.get("ragged_executions")
    suffix = f"{'.' if '.' in point.backend.partition('@')[2] else '@'}{way}"

    def per_execution(name: str) -> float | None:
        return counts[name] / own if own and name in counts else None

    return RaggedWay(
        point=point.point,
        backend=point.backend,
        target=point.backend.removesuffix(suffix),
        way=way,
        batch_size=point.batch_size,
        concurrency=point.concurrency,
        rate=point.rate,
        throughput=_rate(point),
        latency_ms=_value(point, "latency_p50"),
        executions=executions or None,
        requests_per_execution=requests / executions if executions else None,
        items_per_execution=items / executions if executions else None,
        lengths_per_execution=per_execution("ragged_shapes"),
        most_lengths=_whole(counts, "ragged_most_shapes"),
        mixed_share=per_execution("ragged_mixed"),
        calls_per_execution=per_execution("ragged_calls"),
        shortest=_whole(counts, "ragged_shortest"),
        longest=_whole(counts, "ragged_longest"),
        particles_per_item=counts.get("particles_per_item"),
        padded_share=counts.get("padded_share"),
        filled_share=counts.get("ragged_filled_share"),
        answers=_answers(counts),
    )


def _executed(level: Level | None) -> tuple[int, int, int]:
    """Executions, requests and items of the window, by the server's statistics; 0 without any."""
    stats = list((level.server_stats or {}).values()) if level is not None else []
    return (
        sum(one.exec_count for one in stats),
        sum(one.success for one in stats),
        sum(one.count for one in stats),
    )


def _answers(counts: Mapping[str, float]) -> Answers | None:
    if "answers_compared" not in counts:
        return None
    largest = counts["answers_largest"]
    return Answers(
        compared=int(counts["answers_compared"]),
        differ=int(counts["answers_differ"]),
        largest=largest if math.isfinite(largest) else None,
        met=int(counts["answers_met"]),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _whole(counts: Mapping[str, float], name: str) -> int | None:
    return int(counts[name]) if name in counts else None


def _value(point: PointSummary, name: str) -> float | None:
    figure = point.metrics.get(name)
    return None if figure is None else figure.value


def _rate(point: PointSummary) -> Estimate:
    figure = point.metrics.get("throughput")
    if figure is None:
        return Estimate(value=point.throughput)
    return Estimate(value=figure.value, low=figure.low, high=figure.high)


def ragged_findings(records: Sequence[PointRecord]) -> Iterator[Finding]:
    """Answers that change with the batch, once for all levels of the same inputs."""
    said: dict[tuple[str, int | None], list[PointRecord]] = {}
    for record in records:
        if int(_number(record.notes.get("answers_differ", "")) or 0):
            said.setdefault((record.backend, record.batch_size), []).append(record)
    for (backend, batch), of_it in said.items():
        notes = of_it[0].notes
        differ, compared = int(notes["answers_differ"]), int(notes["answers_compared"])
        largest = _number(notes["answers_largest"])
        how = (
            f"by up to {largest:.2g} of the largest value"
            if largest is not None and math.isfinite(largest)
            else "in shape, or by values that are no numbers"
        )
        yield finding(
            "answers-differ",
            f"{backend} answered {differ} of {compared} requests of batch {batch} otherwise beside "
            f"others than alone ({how})",
            point=of_it[0].id if len({record.id for record in of_it}) == 1 else None,
            differ=differ,
            compared=compared,
        )

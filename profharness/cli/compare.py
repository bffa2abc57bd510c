"""`profharness compare`: two runs point by point, with noise bounds; `--fail-on` makes it a
gate.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from profharness.analysis.compare.gate import Breach
    from profharness.analysis.compare.reasons import Reason
    from profharness.analysis.compare.records import (
        Comparison,
        Delta,
        Difference,
        HotspotComparison,
        PointComparison,
    )
    from profharness.analysis.records import Summary

SHOWN = ("throughput", "latency", "latency_p50", "latency_p99")
SHOWN_OF_RUN = ("steps_per_second", "throughput")
HOTSPOT_ROWS = 8
REASONS = 6


def compare(
    run_a: Annotated[
        Path,
        typer.Argument(help="The run to compare with, or a trace file.", metavar="RUN_A|FILE_A"),
    ],
    run_b: Annotated[
        Path,
        typer.Argument(help="The run that changed, or its trace file.", metavar="RUN_B|FILE_B"),
    ],
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            help="Exit with 1 when a significant change meets this, such as 'throughput<-5%'.",
            metavar="EXPR",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print the JSON document instead of the table.")
    ] = False,
) -> None:
    """Compare two runs (or trace files), with noise bounds; usable as a CI gate."""
    from profharness.analysis.compare.gate import breaches, parse
    from profharness.analysis.compare.runs import compare as compared

    conditions = () if fail_on is None else parse(fail_on)
    comparison = compared(_summary(run_a), _summary(run_b))
    found = breaches(comparison, conditions)
    sys.stdout.write(
        _json(comparison, found) if json else "\n".join(_lines(comparison, found)) + "\n"
    )
    if found:
        raise typer.Exit(1)


def _summary(path: Path) -> Summary:
    from profharness.understand import report_run as understand

    return understand.summarise(understand.load([path]))


def _json(comparison: Comparison, found: tuple[Breach, ...]) -> str:
    import msgspec

    document = msgspec.to_builtins(comparison)
    document["breaches"] = [
        {"condition": one.condition, "point": one.point, "change": one.delta.change}
        for one in found
    ]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _lines(comparison: Comparison, found: tuple[Breach, ...]) -> Iterator[str]:
    yield from _heading(comparison)
    for point in comparison.points:
        yield from _point_lines(point)
    shown = [
        delta
        for delta in comparison.run
        if delta.name in SHOWN_OF_RUN
        or (delta.significant is not False and abs(delta.change) >= 0.05)
    ]
    if shown and not comparison.points:
        yield "run"
        yield from _delta_lines(shown)
    yield from _reason_lines(comparison.reasons)
    for table in comparison.hotspots:
        yield from _hotspot_lines(table)
    for title, names in (
        ("only in A", comparison.only_a),
        ("only in B", comparison.only_b),
        ("failed in B", comparison.failed),
    ):
        if names:
            yield f"{title}: {', '.join(names)}"
    if not comparison.points and not comparison.run:
        yield "nothing in common to compare"
    for one in found:
        yield (
            f"fails {one.condition}{' at ' + one.point if one.point else ''}: {_change(one.delta)}"
        )


def _heading(comparison: Comparison) -> Iterator[str]:
    """Both runs, with what speaks against them, and what was different from the start."""
    for letter, run, errors in (
        ("A", comparison.run_a, comparison.errors_a),
        ("B", comparison.run_b, comparison.errors_b),
    ):
        yield f"{letter}  {run}" + (
            f"   (not sound by itself: {', '.join(errors)})" if errors else ""
        )
    for title, differences in (
        ("asked differently", comparison.asked),
        ("ran on", comparison.ran_on),
    ):
        if differences:
            yield f"{title}: {'; '.join(_difference(one) for one in differences)}"


def _difference(one: Difference) -> str:
    before, after = ("not set" if value is None or not value else value for value in (one.a, one.b))
    return f"{one.name} {before} -> {after}"


def _point_lines(point: PointComparison) -> Iterator[str]:
    deltas = [delta for delta in point.deltas if delta.name in SHOWN]
    if deltas:
        yield point.point
        yield from _delta_lines(deltas)
        yield from _reason_lines(point.reasons)


def _reason_lines(reasons: tuple[Reason, ...]) -> Iterator[str]:
    """`why  +12.0 %  idle: launches in progress rose ...`: what explains only stands after the
    effects, without a figure.
    """
    for number, one in enumerate(reasons[:REASONS]):
        effect = "" if one.effect is None else f"{100 * one.effect:+.1f} %"
        yield f"  {'why' if number == 0 else '':<14} {effect:>8}  {one.message}"


def _delta_lines(deltas: Sequence[Delta]) -> Iterator[str]:
    """Name, both values and the change, in columns."""
    from profharness.report.text.figures import quantity_text

    width = max(14, *(len(delta.name) for delta in deltas))
    for delta in deltas:
        values = f"{quantity_text(delta.a, delta.unit)} -> {quantity_text(delta.b, delta.unit)}"
        yield f"  {delta.name:<{width}} {values:<{50 - width}} {_change(delta)}"


def _change(delta: Delta) -> str:
    """`+3.1 % (noise ± 0.8 %): better`, `within noise`, `cannot tell`, or the change alone where no
    noise is known.
    """
    text = f"{100 * delta.change:+.1f} %"
    if delta.unbounded:
        return f"{text}, cannot tell (the noise is not bounded)"
    if delta.noise is None:
        return text
    # what chance explains is a ratio, the same up and down: + 25 % is as likely as - 20 %
    noise = delta.noise if delta.change >= 0 else delta.noise / (1 + delta.noise)
    if not delta.significant:
        return f"{text}, within noise (± {100 * noise:.1f} %)"
    judged = (
        "changed"
        if delta.better == "neither"
        else "better"
        if (delta.change > 0) == (delta.better == "higher")
        else "worse"
    )
    return f"{text}, {judged} (noise ± {100 * noise:.1f} %)"


def _hotspot_lines(table: HotspotComparison) -> Iterator[str]:
    from profharness.units import format_ns

    changed = [row for row in table.rows if (row.total_a_ns or 0) != (row.total_b_ns or 0)]
    if not changed:
        yield f"hotspots by {table.by}: the same"
        return
    yield f"hotspots by {table.by}, largest change of total time first (mean per call)"
    for row in changed[:HOTSPOT_ROWS]:
        means = [
            ("-" if mean is None else format_ns(mean)) for mean in (row.mean_a_ns, row.mean_b_ns)
        ]
        change = "" if row.change is None else f"{100 * row.change:+.1f} %"
        yield (
            f"  {means[0]:>10} -> {means[1]:>10}  {change:>9}  {row.calls_a or 0:>7} -> "
            f"{row.calls_b or 0:<7} calls  {row.name[:80]}"
        )
        why = (
            row.reason
            if row.significant is not False
            else f"within noise (± {100 * (row.noise or 0):.1f} %)"
            + (f"; {row.reason}" if row.reason else "")
        )
        if why and row.mean_a_ns is not None and row.mean_b_ns is not None:
            yield f"  {'':>36}{why}"

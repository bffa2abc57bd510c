"""What the HTML report says, as values: tiles, tables and plots in reading order, with their
provenance.

The template prints these and decides nothing besides leaving out what is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Figure, Summary, TelemetryRow
from profharness.findings import Finding
from profharness.report.plots.time import (
    PARTS,
    allowed_cores,
    part_ns,
    telemetry_scale,
    telemetry_title,
)
from profharness.report.tables.scan import Cell, scan_columns, scan_rows
from profharness.report.text import names
from profharness.report.text.figures import (
    brief_text,
    cores_text,
    coverage_text,
    estimate_text,
    figure_text,
    figure_tip,
    finite,
    fraction_text,
    needs_text,
    number_text,
    percent_text,
)
from profharness.report.text.findings import all_findings, figures_of, finding_place
from profharness.report.text.labels import (
    KERNELS,
    device_word,
    is_command,
    item_unit,
    level_name,
    no_kernels,
    on_cpu,
    point_name,
    series_name,
)
from profharness.report.text.limits import IDLE_CAUSES, cause_times, full_verdict
from profharness.report.text.rates import MEANING, throughput_ends, throughput_text
from profharness.report.text.scan_sentences import (
    best_series,
    points_of,
    recommended_point,
    still_rising,
)
from profharness.units import format_clock, format_ns, format_number, format_share

BUILT_IN = "particlenet"
"""The scan that runs where none is named, and its own model."""


@dataclass(frozen=True)
class Tile:
    """A headline figure: what it is, its text, a line below it, and its provenance."""

    label: str
    text: str
    note: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Head:
    """A column's title, its alignment ("num" or "") and what it means."""

    title: str
    kind: str = ""
    tip: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under heads; `caption` says what it is to those who cannot see it, `marked`
    rows stand out.
    """

    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]
    marked: frozenset[int] = frozenset()

    @property
    def compact(self) -> bool:
        """Whether the table holds short figures only, so that it need not stretch over the page."""
        return not any(len(cell.text) > 40 for row in self.rows for cell in row)


@dataclass(frozen=True)
class FindingBox:
    """A finding as the page shows it."""

    anchor: str
    severity: str
    place: str
    message: str
    figures: tuple[str, ...]
    advice: str


def title(summary: Summary) -> str:
    """The run's scan or command, as the page's heading; the built-in scan of another model is
    called by the model.
    """
    run = summary.run
    if run is None:
        return summary.source.rstrip("/").rsplit("/", 1)[-1]
    if run.scan == BUILT_IN and (model := run.asked.get("model", BUILT_IN)) != BUILT_IN:
        return ", ".join(part.rstrip("/").rsplit("/", 1)[-1] for part in model.split(","))
    return " ".join(run.command) if is_command(summary) and run.command else run.scan or run.id


def subtitle(summary: Summary) -> tuple[Cell, ...]:
    """Device, host, date and state, those that are known; a state other than done stands out."""
    run = summary.run
    if run is None:
        return (Cell("loose trace files"),) if summary.trace.kernels else ()
    device = run.cpu_model if on_cpu(summary) and run.cpu_model else run.device
    parts = tuple(
        Cell(part)
        for part in (device, run.host, run.created.replace("T", " ").replace("Z", " UTC"), run.id)
        if part
    )
    return parts if run.state == "done" else (*parts, Cell(run.state, tone="error"))


def tiles(summary: Summary) -> tuple[Tile, ...]:
    """Four or five figures that carry the answer."""
    found = (
        _command_tiles(summary)
        if is_command(summary) or not summary.points
        else _scan_tiles(summary)
    )
    return tuple(found)


def _scan_tiles(summary: Summary) -> Iterable[Tile]:
    series = best_series(summary)
    measured = [point for point in summary.points if finite(point.throughput) is not None]
    best = max(measured, key=lambda point: point.throughput or 0.0, default=None)
    if best is None or best.throughput is None:
        return
    yield Tile(
        "best throughput",
        throughput_text(best),
        f"{item_unit(summary)} at {point_name(summary, best)}",
        "; ".join(
            part
            for part in (
                figure_tip(best.metrics.get(names.THROUGHPUT)),
                MEANING if throughput_ends(best) else "",
            )
            if part
        ),
    )
    point = None if series is None else recommended_point(summary, series)
    if series is not None and series.recommended is not None:
        yield Tile(
            "recommended",
            level_name(series.axis, series.recommended.at),
            f"{number_text(round(series.recommended.throughput))} {item_unit(summary)}",
            "the smallest level within 5 % of the best throughput",
        )
    shown = point or best
    where = point_name(summary, shown)
    p50 = shown.metrics.get(names.LATENCY_P50)
    if p50 is not None and finite(p50.value) is not None:
        yield Tile("latency p50", figure_text(p50, interval=False), f"at {where}", figure_tip(p50))
    yield from _device_tiles(summary, shown.metrics, where)


def _device_tiles(summary: Summary, metrics: dict[str, Figure], where: str) -> Iterable[Tile]:
    gpu, fill = (
        metrics.get(names.GPU_PERCENT),
        _first(metrics, names.FILL_BARE, names.FILL, names.WAVE_FILL),
    )
    at = f"at {where}" if where else ""
    if gpu is not None and finite(gpu.value) is not None:
        yield Tile(
            "GPU %",
            f"{gpu.value:.0f}",
            f"the driver's figure {at}".rstrip(),
            figure_tip(gpu, names.meaning_of(names.GPU_PERCENT)),
        )
    if fill is not None:
        yield Tile(
            "fill",
            fraction_text(fill.value),
            f"of the compute units {at}".rstrip(),
            figure_tip(fill, names.meaning_of(names.FILL)),
        )
    cores = metrics.get(names.CORES_USED)
    if cores is not None and finite(cores.value) is not None and on_cpu(summary):
        allowed = allowed_cores(summary)
        of = "" if allowed is None else f" of {format_number(allowed)}"
        yield Tile(
            "cores used",
            f"{cores_text(float(cores.value or 0))}{of}",
            at,
            figure_tip(cores, names.meaning_of(names.CORES_USED)),
        )


def _first(metrics: dict[str, Figure], *choices: str) -> Figure | None:
    return next(
        (
            metrics[name]
            for name in choices
            if name in metrics and finite(metrics[name].value) is not None
        ),
        None,
    )


def _command_tiles(summary: Summary) -> Iterable[Tile]:
    partition = summary.partition
    if partition is not None and partition.window_ns > 0:
        word = device_word(summary)
        yield Tile(
            "computing",
            format_share(partition.compute_ns / partition.window_ns),
            f"of the {word}'s time",
        )
        yield Tile(
            "idle",
            format_share(partition.idle_ns / partition.window_ns),
            f"of {format_ns(partition.window_ns, 3)}",
        )
    step = summary.metrics.get(names.STEP_TIME)
    if step is not None and finite(step.value) is not None:
        yield Tile(
            "step",
            figure_text(step, interval=False),
            f"{step.note} of the steady steps"
            if step.note in ("mean", "median")
            else step.note or "steady steps",
            figure_tip(step),
        )
    for name, label in ((names.STEP_RATE, "steps per second"), (names.THROUGHPUT, "throughput")):
        figure = summary.metrics.get(name)
        if figure is not None and finite(figure.value) is not None:
            yield Tile(
                label,
                figure_text(figure, interval=False),
                figure.note or "steady steps",
                figure_tip(figure, names.meaning_of(name)),
            )
    yield from _device_tiles(summary, summary.metrics, "")
    if partition is None and summary.trace.span_ns and summary.trace.busy_ns is not None:
        yield Tile(
            "device busy",
            format_share(summary.trace.busy_ns / summary.trace.span_ns),
            f"of {format_ns(summary.trace.span_ns, 3)}",
            f"{format_number(summary.trace.kernels)} kernels, first start to last end",
        )


def scan_table(summary: Summary) -> Table | None:
    """The table of the points, as the terminal shows it; for a command with points too."""
    if not summary.points:
        return None
    columns = scan_columns(summary)
    heads = tuple(
        Head(column.title, "num" if column.align == "right" else "", column.meaning)
        for column in columns
    )
    rows, marked = list(scan_rows(summary, columns)), _marked_rows(summary)
    for index, why in marked.items():
        first = rows[index][0]
        rows[index] = (Cell(f"★ {first.text}", tip=f"{why}; {first.tip}"), *rows[index][1:])
    return Table("The points of the scan", heads, tuple(rows), frozenset(marked))


def star_text(summary: Summary) -> str:
    """What a star says: the recommended level, or every level that may be the best where the
    intervals overlap.
    """
    if any(series.overlaps_best for series in summary.series):
        return (
            "★ marks the recommended level and every other one whose interval overlaps that of "
            "the highest throughput: among them "
            "no level is proven best."
        )
    return "★ marks the recommended level."


def _marked_rows(summary: Summary) -> dict[int, str]:
    """Row and reason of each marked point: the recommended ones, and where intervals overlap all
    that tie with the best.
    """
    why: dict[str, str] = {}
    for series in summary.series:
        tied = set(series.overlaps_best)
        if tied:
            sound = [
                (rate, level)
                for level, rate in zip(series.levels, series.throughput, strict=True)
                if level not in series.flagged
            ]
            tied.add(max(sound)[1])
        why |= {
            point.point: "as good as the best within the intervals"
            for point in points_of(summary, series)
            if getattr(point, series.axis) in tied
        }
        recommended = recommended_point(summary, series)
        if recommended is not None:
            why[recommended.point] = "recommended" + (
                ", not proven better than the other marked ones" if tied else ""
            )
    return {
        index: why[point.point] for index, point in enumerate(summary.points) if point.point in why
    }


def partition_table(summary: Summary) -> Table | None:
    """The parts of a whole window with their times, and gaps by size."""
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return None
    rows = [
        (
            Cell(part.label),
            Cell(format_share(part_ns(partition, part) / partition.window_ns)),
            Cell(format_ns(part_ns(partition, part))),
        )
        for part in PARTS
        if part_ns(partition, part)
    ]
    for label, total, exposed in (
        (
            "communication, hidden behind compute",
            partition.communication_ns,
            partition.exposed_communication_ns,
        ),
        ("copies, hidden behind compute", partition.copy_ns, partition.exposed_copy_ns),
    ):
        if total > exposed:
            rows.append(
                (
                    Cell(label, tone="muted"),
                    Cell(format_share((total - exposed) / partition.window_ns), tone="muted"),
                    Cell(format_ns(total - exposed), tone="muted"),
                )
            )
    return Table(
        "Parts of the window",
        (Head("part"), Head("share", "num"), Head("time", "num")),
        tuple(rows),
    )


def gaps_text(summary: Summary) -> str:
    """How the idle time divides into short and long gaps."""
    partition = summary.partition
    causes = None if partition is None else partition.idle_causes
    if (
        causes is None
        or partition is None
        or not (causes.micro_ns or causes.macro_ns)
        or not partition.window_ns
    ):
        return ""
    return (
        f"Gaps under 10 µs hold {format_share(causes.micro_ns / partition.window_ns)} of the time, "
        f"longer ones {format_share(causes.macro_ns / partition.window_ns)}."
    )


def causes_note(summary: Summary) -> tuple[tuple[str, str], ...]:
    """What to try against each idle cause that holds 1 % of the window or more."""
    partition = summary.partition
    if partition is None or partition.idle_causes is None:
        return ()
    large = sorted(
        (
            (ns, name)
            for name, ns in cause_times(partition.idle_causes)
            if ns >= partition.window_ns / 100
        ),
        reverse=True,
    )
    return tuple((IDLE_CAUSES[name].label, IDLE_CAUSES[name].advice) for _, name in large)


def window_verdict(summary: Summary) -> str:
    """The verdict of a whole window; empty without one."""
    return full_verdict(summary.verdict, summary.partition)


def finding_boxes(summary: Summary) -> tuple[FindingBox, ...]:
    """Every finding, errors first."""
    return tuple(
        _box(summary, index, finding) for index, finding in enumerate(all_findings(summary))
    )


def _box(summary: Summary, index: int, finding: Finding) -> FindingBox:
    return FindingBox(
        f"finding-{index}",
        finding.severity,
        finding_place(summary, finding),
        finding.message,
        figures_of(finding),
        finding.advice,
    )


def fit_table(summary: Summary) -> Table | None:
    """Fitted parameters of each series with their intervals; ends that the data do not bound are
    said.
    """
    rows = [row for series in summary.series for row in _fit_rows(series)]
    if not rows:
        return None
    return Table(
        "Fitted curves",
        (
            Head("curve"),
            Head("quantity"),
            Head("value (95 % interval)", "num"),
            Head("what it says"),
        ),
        tuple(rows),
    )


def _fit_rows(series: Series) -> Iterable[tuple[Cell, ...]]:
    name = series_name(series) or "all points"
    if series.batch is not None:
        for label, value, meaning in (
            ("T max", series.batch.t_max, "throughput that the curve tends to, items/s"),
            ("b half", series.batch.b_half, "batch size of the curve's bend"),
            ("p", series.batch.p, "sharpness of the bend (1 is a plain hyperbola)"),
            (
                "b90",
                series.batch.b90,
                "batch size that reaches 90 % of the best, from the measured points",
            ),
        ):
            yield Cell(name), Cell(label), Cell(estimate_text(value)), Cell(meaning, tone="muted")
    if series.usl is not None:
        for label, value, meaning in (
            ("λ", series.usl.lambda_, "throughput of one client, items/s"),
            ("σ", series.usl.sigma, "share that cannot run in parallel"),
            ("κ", series.usl.kappa, "cost of keeping the clients consistent"),
            ("N peak", series.usl.n_peak, "concurrency of the highest throughput"),
        ):
            yield Cell(name), Cell(label), Cell(estimate_text(value)), Cell(meaning, tone="muted")
    if series.fitted_note and (series.batch is not None or series.usl is not None):
        yield Cell(name), Cell("levels"), Cell(""), Cell(series.fitted_note, tone="muted")
    yield from _knee_rows(name, series)


def _knee_rows(name: str, series: Series) -> Iterable[tuple[Cell, ...]]:
    if series.knee is not None:
        ends = [
            number_text(round(end, 1))
            for end in (series.knee.low, series.knee.high)
            if end is not None
        ]
        value = (
            "not reached in this scan"
            if series.knee.n is None
            else f"{_least(series)}{number_text(round(series.knee.n, 1))}"
        )
        between = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
        yield (
            Cell(name),
            Cell("knee"),
            Cell(f"{value}{between}"),
            Cell("concurrency where the asymptotes meet", tone="muted"),
        )
    if series.jobs_per_device is not None:
        yield (
            Cell(name),
            Cell("jobs per device"),
            Cell(f"{_least(series)}{format_number(series.jobs_per_device)}"),
            Cell("the knee less its margin", tone="muted"),
        )
    if series.step is not None:
        yield (
            Cell(name),
            Cell("jump"),
            Cell(f"{series.step.ratio:.2f}x at {format_number(series.step.at)}"),
            Cell("throughput against the trend, most often a kernel switch", tone="muted"),
        )


def _least(series: Series) -> str:
    """A curve that still rises bounds its knee from below only."""
    return "at least " if still_rising(series) else ""


def passes_table(summary: Summary) -> Table | None:
    """Each pass: layers, how long it took, its state, and what each layer cost."""
    if not summary.passes:
        return None
    missing = "not measured: needs --bare" if is_command(summary) else ""
    rows = tuple(
        (
            Cell(row.name),
            Cell(", ".join(row.layers) or "none"),
            Cell("" if row.seconds is None else format_clock(row.seconds)),
            Cell(row.state, tone="error" if row.state in {"failed", "interrupted"} else ""),
            Cell(
                ", ".join(f"{layer} {percent_text(value)}" for layer, value in row.overhead.items())
                or (missing if row.layers else ""),
                tone="" if row.overhead else "muted",
            ),
        )
        for row in summary.passes
    )
    return Table(
        "Passes",
        (
            Head("pass"),
            Head("layers"),
            Head("time", "num"),
            Head("state"),
            Head("overhead", "", "loss of throughput against the bare pass"),
        ),
        rows,
    )


def telemetry_table(summary: Summary) -> Table | None:
    """Mean and extremes of every telemetry metric."""
    several = len({row.device for row in summary.telemetry}) > 1
    rows = tuple(
        (
            Cell(telemetry_title(row), tip=names.meaning_of(row.metric)),
            *([Cell(row.device)] if several else []),
            *(Cell(_plain(value, row)) for value in (row.mean, row.low, row.high)),
            Cell(format_number(row.samples)),
        )
        for row in summary.telemetry
        if finite(row.mean) is not None
    )
    heads = (
        Head("metric"),
        *([Head("device")] if several else []),
        Head("mean", "num", "weighted by time"),
        Head("lowest", "num"),
        Head("highest", "num"),
        Head("samples", "num"),
    )
    return Table("Telemetry", heads, rows) if rows else None


def _plain(value: float, row: TelemetryRow) -> str:
    """Four significant digits of the row's largest value: the same decimals in all three cells, and
    no 0.00001895.
    """
    shown, largest = (
        finite(value),
        max(abs(one) for one in (row.mean, row.low, row.high) if finite(one) is not None),
    )
    factor, scaled = telemetry_scale(row.unit)
    decimals = 3 - math.floor(math.log10(largest * factor)) if largest else 0
    return (
        "" if shown is None else f"{brief_text(round(shown * factor, decimals))} {scaled}".strip()
    )


def unmeasured(summary: Summary) -> tuple[tuple[str, str], ...]:
    """(what is needed, titles of the figures that it would give), for the run's figures and those
    no point has.
    """
    found: dict[str, str] = {
        name: figure.needs
        for name, figure in summary.metrics.items()
        if finite(figure.value) is None
    }
    for name in dict.fromkeys(name for point in summary.points for name in point.metrics):
        figures = [point.metrics[name] for point in summary.points if name in point.metrics]
        if all(finite(figure.value) is None for figure in figures):
            found[name] = figures[0].needs
    lacking: dict[str, list[str]] = {}
    for name, needs in found.items():
        lacking.setdefault(needs, []).append(names.title_of(name))
    why = no_kernels(summary)
    return tuple(
        (why, f"{len(titles)} figures of device work")
        if why and needs.startswith(KERNELS)
        else (needs_text(needs), ", ".join(titles))
        for needs, titles in lacking.items()
    )


def figures_table(caption: str, metrics: dict[str, Figure]) -> Table | None:
    """Every measured figure of a window or point, with its provenance in columns of their own."""
    rows = tuple(
        (
            Cell(names.title_of(name), tip=names.meaning_of(name)),
            Cell(figure_text(figure)),
            Cell(figure.source, tone="muted"),
            Cell(_remarks(figure), tone="muted"),
        )
        for name, figure in metrics.items()
        if finite(figure.value) is not None
    )
    return (
        Table(caption, (Head("figure"), Head("value", "num"), Head("from"), Head("remarks")), rows)
        if rows
        else None
    )


def _remarks(figure: Figure) -> str:
    covers = coverage_text(figure)
    return "; ".join(part for part in (covers, figure.note) if part)


def point_figures(summary: Summary) -> tuple[tuple[str, Table], ...]:
    """The figures of each point, for the reader who wants all of them."""
    tables = (
        (
            point_name(summary, point),
            figures_table(f"Figures of {point_name(summary, point)}", point.metrics),
        )
        for point in summary.points
    )
    return tuple((name, table) for name, table in tables if table is not None)

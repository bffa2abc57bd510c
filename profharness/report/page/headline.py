"""The head of the page: title, what ran where, and a few figures that carry the answer."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import Figure, Summary
from profharness.report.page.files import files_facts, files_title
from profharness.report.table import Cell
from profharness.report.text import names
from profharness.report.text.figures import (
    cores_text,
    figure_text,
    figure_tip,
    finite,
    is_known,
    number_text,
)
from profharness.report.text.labels import (
    allowed_cores,
    device_word,
    is_command,
    item_unit,
    level_name,
    on_cpu,
    point_name,
)
from profharness.report.text.limits import open_share
from profharness.report.text.rates import MEANING, throughput_text
from profharness.report.text.scan_sentences import best_series, recommended_point
from profharness.units import format_ns, format_number, format_share

_FEW = 100  # items/s
BUILT_IN = "particlenet"
"""The scan that runs where none is named, and its own model."""


@dataclass(frozen=True)
class Tile:
    """A headline figure: what it is, its text, a line below it, and its provenance."""

    label: str
    text: str
    note: str = ""
    provenance: str = ""


def title(summary: Summary) -> str:
    """The run's scan or command, as the page's heading; the built-in scan of another model is
    called by the model.
    """
    run = summary.run
    if run is None:
        return files_title(summary)
    if run.scan == BUILT_IN and (model := run.asked.get("model", BUILT_IN)) != BUILT_IN:
        return ", ".join(part.rstrip("/").rsplit("/", 1)[-1] for part in model.split(","))
    if is_command(summary) and run.command:
        return " ".join(map(_short_word, run.command))
    return run.scan or run.id


def _short_word(word: str) -> str:
    """A word of a command without the folder of a whole path; the provenance has all of it."""
    return word.rstrip("/").rsplit("/", 1)[-1] if word.startswith("/") else word


def subtitle(summary: Summary) -> tuple[Cell, ...]:
    """Device, host, date and state, those that are known; a state other than done stands out. Of
    trace files what they are, their devices, kernels and span.
    """
    run = summary.run
    if run is None:
        return tuple(map(Cell, files_facts(summary)))
    device = run.cpu_model if on_cpu(summary) and run.cpu_model else run.device
    parts = tuple(
        Cell(part)
        for part in (device, run.host, run.created.replace("T", " ").replace("Z", " UTC"), run.id)
        if part
    )
    return parts if run.state == "done" else (*parts, Cell(run.state, emphasis="error"))


def tiles(summary: Summary) -> tuple[Tile, ...]:
    """Four or five figures that carry the answer."""
    shown = (
        _command_tiles(summary)
        if is_command(summary) or not summary.points
        else _scan_tiles(summary)
    )
    return tuple(shown)


def _scan_tiles(summary: Summary) -> Iterable[Tile]:
    series = best_series(summary)
    measured = [
        point for point in summary.points if finite(point.throughput) is not None and point.kept
    ]
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
            f"{_rate_text(series.recommended.throughput)} {item_unit(summary)}",
            "the smallest level within 5 % of the best throughput",
        )
    shown = point or best
    where = point_name(summary, shown)
    yield from _recommended_of_axes(summary)
    p50 = shown.metrics.get(names.LATENCY_P50)
    if p50 is not None and finite(p50.value) is not None:
        yield Tile("latency p50", figure_text(p50, interval=False), f"at {where}", figure_tip(p50))
    yield from _device_tiles(summary, shown.metrics, where)


def _recommended_of_axes(summary: Summary) -> Iterable[Tile]:
    """The recommended point of a scan of a command."""
    scan = summary.axes
    name = None if scan is None else scan.recommended
    point = next((one for one in summary.points if one.point == name), None)
    if point is not None:
        yield Tile(
            "recommended",
            point_name(summary, point),
            f"{throughput_text(point)} {item_unit(summary)}",
            "within 5 % of the best throughput, with the smallest values",
        )


def _rate_text(rate: float) -> str:
    """Whole items per second; of few of them three digits."""
    return number_text(round(rate)) if rate >= _FEW else f"{rate:.3g}"


def _device_tiles(summary: Summary, metrics: dict[str, Figure], where: str) -> Iterable[Tile]:
    gpu = metrics.get(names.GPU_PERCENT)
    at = f"at {where}" if where else ""
    if gpu is not None and finite(gpu.value) is not None:
        yield Tile(
            "GPU %",
            f"{gpu.value:.0f}",
            f"the driver's figure {at}".rstrip(),
            figure_tip(gpu, names.meaning_of(names.GPU_PERCENT)),
        )
    yield from _fill_tile(metrics, at)
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


def _fill_tile(metrics: dict[str, Figure], at: str) -> Iterable[Tile]:
    """How full the device was: by its kernels, else by counters of the hardware, else by the
    driver's waves.
    """
    fill = _first(metrics, names.FILL_BARE, names.FILL)
    if fill is not None:
        yield Tile(
            "fill",
            figure_text(fill, interval=False),
            f"of the compute units {at}".rstrip(),
            figure_tip(fill, names.meaning_of(names.FILL)),
        )
        return
    for name, of in (
        (names.CU_ACTIVE, "of the time, by counters of the hardware"),
        (names.SM_ACTIVITY, "of the time, by counters of the hardware"),
        (names.WAVE_FILL, "of the waves that fit, by the driver"),
    ):
        figure = _first(metrics, name)
        if figure is not None and figure.value is not None:
            yield Tile(
                names.title_of(name),
                format_share(figure.value),
                f"{of} {at}".rstrip(),
                figure_tip(figure, names.meaning_of(name)),
            )
            return


def _first(metrics: dict[str, Figure], *choices: str) -> Figure | None:
    return next(
        (metrics[name] for name in choices if is_known(metrics.get(name))),
        None,
    )


def _command_tiles(summary: Summary) -> Iterable[Tile]:
    partition = summary.partition
    if partition is not None and partition.window_ns > 0:
        word = device_word(summary)
        yield Tile(
            "computing",
            open_share(partition, partition.compute_ns),
            f"of the {word}'s time",
        )
        yield Tile(
            "idle",
            open_share(partition, partition.idle_ns),
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

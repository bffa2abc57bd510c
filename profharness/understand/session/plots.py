"""Figures of a run or of trace files for notebooks: those for papers, the rows of hotspots, and
where the time went. The caller's settings of matplotlib stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profharness.errors import InputError, Unavailable, UsageError
from profharness.rundir.shown.screen import one_line
from profharness.understand.session.bars import draw_hotspots, draw_partition

if TYPE_CHECKING:
    from profharness.report.plots.paper import Curve
    from profharness.understand.session.recording import Recording

Draw = Callable[["Recording", "Wanted"], Any]


@dataclass(frozen=True)
class Wanted:
    """Which figure: its kind, a line above it, and which and how many rows of hotspots."""

    kind: str | None = None
    title: str = ""
    top: int = 20
    by: str | None = None


def draw(recording: Recording, wanted: Wanted) -> Any:  # a matplotlib figure
    """The figure. Raises UsageError for a kind that does not exist, Unavailable without matplotlib,
    and InputError where nothing was measured for it.
    """
    if wanted.kind not in (None, *KINDS):
        raise UsageError(f"plot {wanted.kind!r}: no such kind", f"one of {', '.join(KINDS)}")
    if wanted.top < 1:
        raise UsageError(f"top {wanted.top}: no such number of rows", "ask for at least 1")
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise Unavailable(
            f"figures need matplotlib ({error})", "pip install 'profharness[plots]'"
        ) from error
    with mpl.rc_context():
        if wanted.kind is not None:
            return KINDS[wanted.kind](recording, wanted)
        return _first(recording, wanted)


def _first(recording: Recording, wanted: Wanted) -> Any:
    """The first kind that there are figures for."""
    for kind in _BY_ITSELF:
        try:
            return KINDS[kind](recording, wanted)
        except InputError as error:
            last = error
    raise last


def _throughput(recording: Recording, wanted: Wanted) -> Any:
    from profharness.report.plots.paper import Frame, shortened
    from profharness.report.plots.paper import draw as draw_curves

    curves, unit = _curves(recording)
    return draw_curves(shortened(curves), None, Frame(title=wanted.title, unit=unit))


def _latency(recording: Recording, wanted: Wanted) -> Any:
    """Latency over throughput: what each level gives, and what it costs."""
    from profharness.report.plots.paper import shortened
    from profharness.report.plots.paper_looks import looks
    from profharness.report.plots.paper_style import as_text, canvas, kept

    curves, unit = _curves(recording)
    plt = canvas(None)
    figure, axes = plt.subplots(figsize=(12, 9))
    drawn = shortened(curves)
    for curve, look in zip(drawn, looks([curve.words for curve in drawn]), strict=True):
        label = as_text(curve.label)
        axes.plot(curve.throughput, curve.latency_ms, label=label, **look.settings)
        for level, x, y in zip(curve.level, curve.throughput, curve.latency_ms, strict=True):
            axes.annotate(
                f"{level:g}", (x, y), xytext=(6, -12), textcoords="offset points", fontsize=14
            )
    axes.set(xlabel=f"Throughput ({as_text(unit)})", ylabel="Latency (ms)", yscale="log")
    axes.set_xlim(left=0)
    if len(curves) > 1:
        axes.legend(fontsize="x-small")
    if wanted.title:
        axes.set_title(as_text(wanted.title), loc="left", fontsize="small")
    return kept(figure, None, plt)


def _curves(recording: Recording) -> tuple[tuple[Curve, ...], str]:
    """The curves of a scan, and the unit of their throughput. Raises InputError where no two levels
    were measured.
    """
    from profharness.analysis.run.series import run_table
    from profharness.report.plots.paper import curves

    table = run_table(recording.summary.points, recording.summary.source)
    if table is None:
        raise InputError(
            f"{one_line(recording.summary.source)}: no two levels were measured",
            "open a run that scans several batch sizes",
        )
    return curves(table), table.unit


def _roofline(recording: Recording, wanted: Wanted) -> Any:
    from profharness.report.plots.paper_roofline import draw_roofline
    from profharness.report.plots.work_roofline import work_roofline

    use = recording.device_use
    drawn = work_roofline(use)
    if drawn is None:
        needs = "device work: kernels with times" if use is None else use.needs
        raise InputError(
            f"{one_line(recording.summary.source)}: no operator or kernel whose operations and "
            "bytes are both known",
            f"this takes {needs}",
        )
    return draw_roofline(drawn, None, title=wanted.title)


def _hotspots(recording: Recording, wanted: Wanted) -> Any:
    return draw_hotspots(recording.hotspots(wanted.by), wanted.top, wanted.title)


def _partition(recording: Recording, wanted: Wanted) -> Any:
    return draw_partition(recording.summary, wanted.title)


KINDS: dict[str, Draw] = {
    "throughput": _throughput,
    "latency": _latency,
    "roofline": _roofline,
    "hotspots": _hotspots,
    "partition": _partition,
}
_BY_ITSELF = ("throughput", "partition", "hotspots")

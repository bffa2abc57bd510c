"""The live page: what is sent once, and its parts, which are sent again whenever they changed.

The page forbids itself every connection but to its own address, every script and style but its own
(named by hash). Its script only puts parts in their places: what they show is made here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.axes.naming import setting_text
from profharness.analysis.live.order import pass_words
from profharness.analysis.live.records import LiveAnswer, LivePass, LivePoint, LiveRun, LiveSeries
from profharness.report.live.curves import drawn
from profharness.report.live.svg import bar_svg, spark_svg
from profharness.report.page.script import by_hash, style
from profharness.report.page.templating import environment
from profharness.report.plots.colors import CURVES, MEASURES
from profharness.report.text import names
from profharness.report.text.figures import brief_text, quantity_text
from profharness.report.text.rates import throughput_text
from profharness.report.text.sampled import metric_title, telemetry_scale
from profharness.units import format_clock

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

MOST_POINTS = 100
MOST_TILES = 12
_PARTS = ("head", "opening", "curve", "points", "telemetry", "passes")
_TEMPLATES = files("profharness.report.live") / "templates"
_SHARES = {"%": 100.0, "share": 1.0}
_STATES = {
    "preparing": "being prepared",
    "running": "running",
    "done": "measured",
    "failed": "failed",
    "interrupted": "interrupted",
    "killed": "killed",
}


class Moment(msgspec.Struct, frozen=True):
    """What the page shows at a moment: the run, its telemetry, and, once it has ended, what it came
    to. `ended` says that the page will hear no more.
    """

    run: LiveRun
    telemetry: tuple[LiveSeries, ...] = ()
    telemetry_needs: str = ""
    answer: LiveAnswer | None = None
    ended: bool = False


@dataclass(frozen=True)
class Tile:
    """One series: its name, the newest value, the range so far, and its line."""

    title: str
    device: str
    text: str
    range: str
    svg: Markup


def _environment() -> Environment:
    return environment("profharness.report.live")


@cache
def page_text() -> str:
    """The page without its parts, which its script fetches."""
    script, look = own_script(), own_style()
    return (
        _environment()
        .get_template("page.html.j2")
        .render(script=script, style=look, policy=policy(), parts=_PARTS)
    )


@cache
def policy() -> str:
    """The content security policy of the page, also as a header."""
    return (
        f"default-src 'none'; script-src {by_hash([own_script()])}; "
        f"style-src {by_hash([own_style()])}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


@cache
def own_script() -> Markup:
    """The text of the page's script."""
    from markupsafe import Markup

    text = (_TEMPLATES / "live.js").read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704  a file of this package


@cache
def own_style() -> Markup:
    """The report's style sheet, and what the live page has beside it."""
    from markupsafe import Markup

    text = (_TEMPLATES / "live.css").read_text(encoding="utf-8")
    return Markup(f"{style(())}{text}")  # noqa: S704  files of this package


def parts(moment: Moment) -> dict[str, str]:
    """Each part of the page as HTML, by its name; empty where there is nothing to show yet."""
    run = moment.run
    values = {
        "run": run,
        "moment": moment,
        "state": _state_words(moment),
        "progress": None if not run.planned else bar_svg(run.done / run.planned),
        "count": _count(run),
        "elapsed": "" if run.seconds is None else format_clock(run.seconds),
        "now_for": "" if run.now_s is None else format_clock(run.now_s),
        "left": "" if run.left.seconds is None else format_clock(run.left.seconds),
        "drawn": drawn(run),
        "rows": _rows(run.points[-MOST_POINTS:]),
        "earlier": max(len(run.points) - MOST_POINTS, 0),
        "tiles": tiles(moment.telemetry),
        "passes": [_pass_row(one) for one in run.passes],
    }
    made = _environment()
    return {name: made.get_template(f"{name}.html.j2").render(values).strip() for name in _PARTS}


def _state_words(moment: Moment) -> str:
    if moment.run.state == "done":
        return "ended" if moment.ended else "measured, the report is being made"
    if moment.ended and moment.run.state in ("running", "preparing"):
        return "killed"
    return _STATES.get(moment.run.state, moment.run.state)


def _count(run: LiveRun) -> str:
    what = "pass" if run.kind == "command" else "point"
    many = f"{what}{'es' if what == 'pass' else 's'}"
    if not run.planned:
        return f"{run.done} {what if run.done == 1 else many} so far"
    return f"{run.done} of {run.planned} {what if run.planned == 1 else many}"


@dataclass(frozen=True)
class Row:
    """One measured point as the table shows it, the newest first."""

    name: str
    pass_name: str
    throughput: str
    latency: str
    count: str
    took: str
    error: str


def _rows(points: tuple[LivePoint, ...]) -> list[Row]:
    return [_row(point) for point in reversed(points)]


def _row(point: LivePoint) -> Row:
    summary = point.summary
    latency_ms = summary.latency_ms
    if latency_ms is None and summary.wall_s is not None:
        latency_ms = summary.wall_s * 1e3
    count = ""
    if summary.requests is not None:
        count = f"{summary.requests} request{'s' * (summary.requests != 1)}"
    elif summary.trials:
        what = "step" if summary.parameters else "trial"
        count = f"{summary.trials} {what}{'s' * (summary.trials != 1)}"
    name = point.name
    if summary.parameters:
        again = point.key.partition("~")[2]
        name = setting_text(summary.parameters)
        name += f", time {int(again) + 1}" if again.isdigit() else ""
    return Row(
        name=name,
        pass_name=point.pass_name,
        throughput=throughput_text(summary) if summary.state == "ok" else summary.state,
        latency="" if latency_ms is None else quantity_text(latency_ms, "ms"),
        count=count,
        took="" if point.took_s is None else format_clock(point.took_s),
        error=summary.error if summary.state != "ok" else "",
    )


def tiles(series: tuple[LiveSeries, ...]) -> list[Tile]:
    """A tile per series, those of devices first as they come."""
    found = []
    several_hosts = len({one.host for one in series}) > 1
    for place, one in enumerate(series[:MOST_TILES]):
        largest = max(map(abs, one.values))
        factor, unit = telemetry_scale(one.unit, largest)
        low, high = min(one.values) * factor, max(one.values) * factor
        device = f"device {one.device}" if one.device else ""
        if several_hosts:
            device = f"{device} on {one.host}" if device else one.host
        found.append(
            Tile(
                title=metric_title(one.metric, one.unit),
                device=device,
                text=f"{_rounded(one.values[-1] * factor, largest * factor)} {unit}".strip(),
                range=f"{_rounded(low, high)} to {_rounded(high, high)} in {_span(one)}",
                svg=spark_svg(
                    one.at_s,
                    one.values,
                    _color(one.metric, place),
                    top=_SHARES.get(one.unit),
                ),
            )
        )
    return found


def _rounded(value: float, largest: float) -> str:
    """To three digits of the largest value: what is far below it is 0."""
    digits = 2 if largest <= 0 else 2 - math.floor(math.log10(largest))
    return brief_text(round(value, max(digits, 0)) + 0.0)


def _color(metric: str, place: int) -> str:
    """The colour that the report gives the metric, else that of its place."""
    return (
        MEASURES.get(names.GPU_PERCENT if metric == "gpu_percent" else metric)
        or CURVES[place % len(CURVES)]
    )


def _span(one: LiveSeries) -> str:
    return format_clock(one.at_s[-1] - one.at_s[0])


@dataclass(frozen=True)
class PassRow:
    """One pass as the table shows it."""

    name: str
    what: str
    count: str
    state: str
    seconds: str


def _pass_row(one: LivePass) -> PassRow:
    what = pass_words(one)
    if one.counters:
        what += f", {one.counters} counter{'s' * (one.counters != 1)}"
    count = "" if one.points == 0 else str(one.done)
    if one.points:
        count = f"{one.done} of {one.points}"
    seconds = "" if one.seconds is None else format_clock(one.seconds)
    return PassRow(one.name, what, count, one.state, seconds)

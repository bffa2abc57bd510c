"""The report as one HTML file that works offline: text, tables, styles, plots and plotly itself
inside.

The page forbids itself every connection and every script but its own two (its content security
policy), follows light and dark, prints, and reads without its script: the tables hold what the
plots show. Plotly puts styles into the page while it draws, so that styles within it stay allowed.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.records import Summary
from profharness.report.page import content
from profharness.report.plots import (
    curves,
    load,
    partition,
    roofline,
    saturation,
    telemetry,
    trials,
    work_roofline,
)
from profharness.report.plots.base import Plot
from profharness.rundir.shown.screen import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

SIZE_LIMIT = 6_000_000
SHOWN_FIRST = 12
"""Rows of a table of hotspots that stand open; the others are behind a fold."""


def render(summary: Summary) -> str:
    """The whole page; under SIZE_LIMIT bytes, of which plotly is 4 to 5 million where there is
    anything to draw.
    """
    drawn = _plots(msgspec.structs.replace(summary, points=summary.points[: content.MOST_ROWS]))
    plotly, script = _plotly() if any(drawn.values()) else None, _script()
    return (
        _environment()
        .get_template("report.html.j2")
        .render(
            summary=summary,
            page=content.content(summary),
            shown_first=SHOWN_FIRST,
            plots=drawn,
            plotly=plotly,
            script=script,
            trusted=_by_hash(one for one in (plotly, script) if one is not None),
            data=_embedded(plot for group in drawn.values() for plot in group),
        )
    )


def _plots(summary: Summary) -> dict[str, tuple[Plot, ...]]:
    """The plots of each section, those without data left out."""

    def some(*plots: Plot | None) -> tuple[Plot, ...]:
        return tuple(plot for plot in plots if plot is not None)

    return {
        "curves": some(curves.throughput_plot(summary), curves.latency_plot(summary)),
        "requests": load.request_plots(summary),
        "saturation": saturation.saturation_plots(summary),
        "time": partition.partition_plots(summary),
        "use": some(work_roofline.work_roofline_plot(summary.use)),
        "roofline": some(roofline.roofline_plot(summary)),
        "trials": some(trials.trials_plot(summary)),
        "telemetry": telemetry.telemetry_plots(summary),
        "overhead": some(curves.overhead_plot(summary)),
    }


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("profharness.report.page"),
        autoescape=True,
        finalize=_on_a_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _on_a_page(value: object) -> object:
    """Foreign names with what has no shape escaped; texts of our own as they are."""
    return visible(value) if type(value) is str else value


def _script() -> Markup:
    """The page's own script, as it stands between its tags."""
    from markupsafe import Markup

    environment = _environment()
    assert environment.loader is not None
    text = environment.loader.get_source(environment, "report.js")[0]
    return Markup(text)  # noqa: S704  a file of this package


def _by_hash(scripts: Iterable[str]) -> Markup:
    """The scripts as sources of a content security policy: what has another text does not run
    (https://www.w3.org/TR/CSP3/#match-element-to-source-list).
    """
    from markupsafe import Markup

    hashes = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    return Markup(" ".join(f"'sha256-{one}'" for one in hashes))  # noqa: S704  digits and letters


def _plotly() -> Markup:
    """Plotly's own script; it holds no closing script tag, which would end ours, and the line ends
    that a browser reads it with.
    """
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    script: str = get_plotlyjs()
    # the text of an installed package, not of a user
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    return Markup(script.replace("</script", "<\\/script"))  # noqa: S704  our package's text


def _embedded(drawn: Iterable[Plot]) -> Markup:
    """The figures as one JSON object by name, fit for a script element: no `<` is left that could
    end it.
    """
    from markupsafe import Markup

    body = ",".join(f'"{plot.name}":{plot.json}' for plot in drawn)
    return Markup(f"{{{body}}}".replace("<", "\\u003c"))  # noqa: S704  `<` is escaped on this line

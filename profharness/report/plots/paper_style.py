"""Matplotlib for figures of papers: without a screen, in the style of CMS or a plain one, with text
that stays text in PDF and SVG.
"""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Any

from profharness.errors import Unavailable, UsageError
from profharness.rundir.outputs import whole_file
from profharness.rundir.shown.screen import one_line
from profharness.units import THIN

_FEW_DECADES = 2.2

PLAIN: dict[str, Any] = {
    "font.size": 22,
    "axes.linewidth": 1.2,
    "axes.grid": True,
    "grid.color": "#d9d9d9",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "xtick.direction": "in",
    "ytick.direction": "in",
    "xtick.top": True,
    "ytick.right": True,
    "legend.frameon": False,
}
# letters stay letters, which a reader can search and an editor can change: Type 42 in PDF
_TEXT: Any = {"svg.fonttype": "none", "pdf.fonttype": 42, "ps.fonttype": 42}


class Style(StrEnum):
    """How a figure looks: that of the CMS experiment (mplhep), or matplotlib's own with a grid."""

    CMS = "cms"
    PLAIN = "plain"


def canvas(output: Path | None, style: Style = Style.CMS) -> Any:
    """Matplotlib's pyplot in this style: without a screen where there is a file to write, and else
    as whoever asks for a figure has set it up. Raises Unavailable without matplotlib (or mplhep,
    for the style of CMS), UsageError for an ending that is no picture's.
    """
    try:
        import matplotlib as mpl

        if output is not None:
            mpl.use("Agg")
        import matplotlib.pyplot as plt

        chosen: Any = _cms() if style is Style.CMS else PLAIN
    except ImportError as error:
        raise Unavailable(
            f"figures need matplotlib and mplhep ({error})", "pip install 'profharness[plots]'"
        ) from error
    plt.style.use("default")
    plt.style.use(chosen)
    plt.rcParams.update(_TEXT)
    if output is None:
        return plt
    formats = plt.figure().canvas.get_supported_filetypes()
    plt.close("all")
    if output.suffix.lstrip(".").lower() not in formats:
        raise UsageError(
            f"{output}: no known kind of picture",
            f"end the name in one of {', '.join(sorted(formats))}",
        )
    return plt


def kept(figure: Any, output: Path | None, plt: Any) -> Any:
    """The figure, written where there is a place for it, and no longer one of pyplot's."""
    if output is not None:
        with whole_file(output) as drawn_to:
            figure.savefig(drawn_to, format=output.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    return figure


def _cms() -> Any:
    import mplhep

    return mplhep.style.CMS


def as_text(name: str) -> str:
    """A foreign name as matplotlib draws it letter by letter: a dollar sign would begin a formula,
    and a control character has no shape.
    """
    return one_line(name).replace("$", r"\$")


def as_text_lines(*lines: str) -> str:
    """The lines that are not empty, below each other."""
    return "\n".join(as_text(line) for line in lines if line)


def grouped(axes: Any) -> None:
    """Ticks of a linear axis with thin spaces between thousands, as all our numbers."""
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace(",", THIN))


def plain_log(axes: Any) -> None:
    """A logarithmic axis whose ticks are plain numbers, with some between powers of ten where there
    are few of these.
    """
    from matplotlib.ticker import LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    few = low > 0 and math.log10(high / low) < _FEW_DECADES
    axes.yaxis.set_major_formatter(_plain)
    axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5) if few else tuple(range(2, 10))))
    axes.yaxis.set_minor_formatter(_plain if few else NullFormatter())
    axes.tick_params(axis="y", which="minor", labelsize="small")


def _plain(value: float, _place: int | None = None) -> str:
    if not 1e-4 <= abs(value) < 1e6:
        return f"{value:.0e}"
    return f"{value:,.10g}".replace(",", THIN)

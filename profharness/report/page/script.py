"""The page's own script and style as they stand between their tags, and how the page's policy names
them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from profharness.report.page.third_party.scripts import ECHARTS, PAKO, script_text
from profharness.rundir.shown.packed import packed

if TYPE_CHECKING:
    from markupsafe import Markup

_TEMPLATES = files("profharness.report.page") / "templates"
_FIRST = ("core.js", "elements.js", "numbers.js")
_THEN = ("saving.js", "plots.js", "tips.js", "tables.js", "commands.js", "lines.js", "start.js")


@cache
def own_script() -> Markup:
    """All that the page runs besides the plots' engine, as one function that runs once. Each
    painter is a function of its own, so that the names in it are its own as well.
    """
    from markupsafe import Markup

    folder = _TEMPLATES / "script"
    painters = [f"(function () {{\n{text}}})();\n" for text in _texts(_TEMPLATES / "painters")]
    parts = [
        *(_text(folder / name) for name in _FIRST),
        *painters,
        *(_text(folder / name) for name in _THEN),
    ]
    whole = "".join(("(function () {\n", '"use strict";\n', *parts, "})();\n"))
    return Markup(whole)  # noqa: S704  files of this package


def engine() -> str:
    """The text of ECharts, which the own script runs once it has something to draw."""
    return script_text(ECHARTS)


@cache
def unpacker() -> Markup:
    """The text of pako, with which the own script unpacks what the page carries packed."""
    from markupsafe import Markup

    return Markup(script_text(PAKO))  # noqa: S704  a file of this package, known by its hash


@cache
def packed_engine() -> Markup:
    """The text of ECharts as it stands in the page."""
    from markupsafe import Markup

    return Markup(packed(engine()))  # noqa: S704  base64


def style(heights: Iterable[int]) -> Markup:
    """The style sheet, with a class for each height that a plot has."""
    from markupsafe import Markup

    classes = "".join(f".tall-{height} {{ height: {height}px; }}\n" for height in sorted(heights))
    text = _text(_TEMPLATES / "report.css")
    return Markup(f"{text}{classes}")  # noqa: S704  a file of this package, and numbers


def by_hash(texts: Iterable[str]) -> Markup:
    """Scripts or styles as sources of a content security policy: what has another text is not
    obeyed (https://www.w3.org/TR/CSP3/#match-element-to-source-list).
    """
    from markupsafe import Markup

    hashes = (b64encode(sha256(text.encode()).digest()).decode() for text in texts)
    return Markup(" ".join(f"'sha256-{one}'" for one in hashes))  # noqa: S704  digits and letters


def _texts(folder: Traversable) -> list[str]:
    scripts = [one for one in folder.iterdir() if one.name.endswith(".js")]
    return [_text(one) for one in sorted(scripts, key=lambda one: one.name)]


def _text(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")

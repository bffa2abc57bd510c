"""What all sheets have in common: the look of the report, a small script, and a policy that lets
the page run nothing else and load nothing.

Tables sort and filter by the script; without it they read as they stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from profharness import __version__
from profharness.report.page.script import by_hash
from profharness.report.page.templating import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_SCRIPTS = ("script/elements.js", "script/lines.js", "sheet.js")
"""The first two are the report's."""


def rendered(template: str, **values: object) -> str:
    """The page of a template. Its values are shown as text, foreign names included."""
    style = f"\n{_text('report.css')}\n{_text('sheet.css')}\n"
    parts = "\n".join(_text(name) for name in _SCRIPTS)
    script = f'\n(function () {{\n"use strict";\n{parts}\n}})();\n'
    return (
        _environment()
        .get_template(template)
        .render(
            style=_own(style),
            script=_own(script),
            style_hash=by_hash([style]),
            script_hash=by_hash([script]),
            version=__version__,
            **values,
        )
    )


def _environment() -> Environment:
    return environment("profharness.report.sheets", "profharness.report.page")


def _text(name: str) -> str:
    """A file of the templates as it stands."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _own(text: str) -> object:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  a text of this package

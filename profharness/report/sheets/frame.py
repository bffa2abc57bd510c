"""What all sheets have in common: the look of the report, one small script, and a policy that lets
the page run nothing else and load nothing.

Tables sort and filter by the script; without it they read as they stand.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from profharness import __version__
from profharness.rundir.shown.screen import visible

if TYPE_CHECKING:
    from jinja2 import Environment


def rendered(template: str, **values: object) -> str:
    """The page of a template. Its values are shown as text, foreign names included."""
    style = f"\n{_text('report.css')}\n{_text('sheet.css')}\n"
    script = f"\n{_text('sheet.js')}\n"
    return (
        _environment()
        .get_template(template)
        .render(
            style=_own(style),
            script=_own(script),
            style_hash=_own(_hash(style)),
            script_hash=_own(_hash(script)),
            version=__version__,
            **values,
        )
    )


def _hash(text: str) -> str:
    """The source expression of a script or style that is this text
    (https://www.w3.org/TR/CSP3/#match-element-to-source-list).
    """
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader(
            [PackageLoader("profharness.report.sheets"), PackageLoader("profharness.report.page")]
        ),
        autoescape=True,
        finalize=_on_a_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _on_a_page(value: object) -> object:
    """Foreign names with what has no shape escaped; texts of our own as they are."""
    return visible(value) if type(value) is str else value


def _text(name: str) -> str:
    """A file of the templates as it stands."""
    environment = _environment()
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _own(text: str) -> object:
    from markupsafe import Markup

    return Markup(text)  # noqa: S704  a text of this package

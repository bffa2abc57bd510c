"""The templates of all our pages: foreign texts are escaped and made visible, our own stay as they
are.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from profharness.report.page.wrapping import unbroken, whole_options
from profharness.rundir.shown.screen import visible

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

_LONG_WORD = 24
"""Letters of the longest word that a column gives room to."""


@cache
def environment(*packages: str) -> Environment:
    """Templates of the folders `templates` of these packages; an earlier one goes first."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        finalize=_on_a_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.tests["long_word"] = _long_word
    made.filters["coded"] = _coded
    made.filters["unbroken"] = unbroken
    return made


def _long_word(text: str) -> bool:
    """Whether a cell holds a word that a narrow column must break: a path or a kernel's name."""
    return len(text) > _LONG_WORD and max(map(len, text.split()), default=0) > _LONG_WORD


def _coded(text: str) -> Markup:
    """The text, with what stands between two backticks as code; numbers keep their units at the end
    of a line, and options stay whole.
    """
    from markupsafe import Markup, escape

    parts = text.split("`")
    if len(parts) % 2 == 0:  # a lone backtick stays what it is
        parts = [text]
    shown = [
        whole_options(str(escape(visible(part if at % 2 else unbroken(part)))))
        for at, part in enumerate(parts)
    ]
    joined = "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(shown))
    return Markup(joined)  # noqa: S704  every part is escaped above


def _on_a_page(value: object) -> object:
    """Foreign names with what has no shape escaped; texts of our own as they are."""
    return visible(value) if type(value) is str else value

"""The templates of all our pages: foreign texts are escaped and made visible, our own stay as they
are.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from profharness.rundir.shown.screen import visible

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(*packages: str) -> Environment:
    """Templates of the folders `templates` of these packages; an earlier one goes first."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in packages]),
        autoescape=True,
        finalize=_on_a_page,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _on_a_page(value: object) -> object:
    """Foreign names with what has no shape escaped; texts of our own as they are."""
    return visible(value) if type(value) is str else value

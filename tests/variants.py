"""Which variants of a test run everywhere, and which wait for `make thorough`: a test of seconds
runs once for each thing that it shows, and its further variants show the same of another tool,
release, protocol or file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

THOROUGH = pytest.mark.thorough


def thorough(*values: object) -> list[Any]:
    """Parameters of variants that wait; a tuple holds the values of one variant's names."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=THOROUGH)
        for value in values
    ]


def but_for(values: Iterable[Any], always: Callable[[Any], bool]) -> list[Any]:
    """All values in their order, of which those run everywhere that `always` is true of."""
    return [one for value in values for one in ([value] if always(value) else thorough(value))]

"""How ranges are called that come from the logs of runtimes: kernels on their way to a queue, and
lines of MIOpen.

Readers of logs make the names here, and whoever counts ranges takes them apart here.
"""

from __future__ import annotations

import re

SUBMISSIONS = "submission"
LINES = "log"

_SUBMISSION = "submission of "
_SHAPE = re.compile(r": \d+ x \d+ x \d+ workgroups of \d+ x \d+ x \d+\Z")
_LIBRARY = "MIOpen "
_FUNCTION = re.compile(r"MIOpen \w+ \[[^\]]*\]")


def submission(kernel: str, shape: str) -> str:
    """`submission of KERNEL: 4 x 1 x 1 workgroups of 256 x 1 x 1`; `shape` is its end, or empty."""
    return f"{_SUBMISSION}{kernel}{f': {shape}' if shape else ''}"


def library_line(level: str, function: str, text: str) -> str:
    """`MIOpen Info2 [FUNCTION] TEXT`."""
    return f"{_LIBRARY}{level}{f' [{function}]' if function else ''} {text}".strip()


def group_of(name: str) -> tuple[str, str] | None:
    """What the ranges of one kind have in common, and the kind: `submission of KERNEL` of whatever
    shape, or level and function of a line of MIOpen. None for any other range.
    """
    if name.startswith(_SUBMISSION):
        return _SHAPE.sub("", name), SUBMISSIONS
    if not name.startswith(_LIBRARY):
        return None
    function = _FUNCTION.match(name)
    return (function[0] if function else name), LINES

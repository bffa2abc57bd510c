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
_LINE = re.compile(r"MIOpen (\w+)(?: \[([^\]]*)\])?(?: (.*))?\Z", re.DOTALL)
_BUILDING = ("SaveBinary", "StoreRecord")
_LOOKING = ("Find", "Search", "GetSolution")
_FUNCTION = re.compile(r"MIOpen \w+ \[[^\]]*\]")


def submission(kernel: str, shape: str) -> str:
    """`submission of KERNEL: 4 x 1 x 1 workgroups of 256 x 1 x 1`; `shape` is its end, or empty."""
    return f"{_SUBMISSION}{kernel}{f': {shape}' if shape else ''}"


def library_line(level: str, function: str, text: str) -> str:
    """`MIOpen Info2 [FUNCTION] TEXT`."""
    return f"{_LIBRARY}{level}{f' [{function}]' if function else ''} {text}".strip()


def submitted(name: str) -> tuple[str, str] | None:
    """Kernel and shape of what `submission` named; the shape is empty where it is not known. None
    for any other range.
    """
    if not name.startswith(_SUBMISSION):
        return None
    shape = _SHAPE.search(name)
    end = len(name) if shape is None else shape.start()
    return name[len(_SUBMISSION) : end], name[end + 2 :]


def line_parts(name: str) -> tuple[str, str, str] | None:
    """Level, function and text of what `library_line` named, None for any other range."""
    match = _LINE.match(name)
    return None if match is None else (match[1], match[2] or "", match[3] or "")


def builds(function: str) -> bool:
    """Whether a line of this function of MIOpen says that a kernel was compiled or tuned."""
    return any(word in function for word in _BUILDING)


def looks_up(function: str) -> bool:
    """Whether a line of this function of MIOpen is part of a search for a solution or record."""
    return function.startswith(_LOOKING) or "Search" in function


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

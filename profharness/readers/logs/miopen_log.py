"""Lines that MIOpen logs (MIOPEN_LOG_LEVEL, MIOPEN_ENABLE_LOGGING, MIOPEN_ENABLE_LOGGING_CMD).

MIOpen writes no time. Our layer puts `@<CLOCK_MONOTONIC ns> ` in front of each line as it arrives;
a log without that has an order and nothing more. Other text of the program is mixed in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import open_line
from profharness.readers.bytes.limits import LATEST_NS, lines_of, whole
from profharness.readers.bytes.text_lines import TextLines
from profharness.trace import log_names
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Marks, Problem, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "miopen-log"
STAMP = "@"

_LINE = re.compile(
    r"(?:@(?P<at>\d+) )?(?:(?P<tid>\d+) )?MIOpen\((?:HIP|OpenCL)\)(?:\s+(?P<delta>[\d.]+)(?= "
    r"?:| ))?\s*: ?(?P<text>.*)\Z"
)
_MESSAGE = re.compile(
    r"(?P<level>Fatal|Error|Warning|Info2?|Trace|Command) \[(?P<function>[^\]]*)\] ?(?P<text>.*)\Z"
)
_KNOWN = 1 << 16  # different lines without a stamp
_SNIFF = re.compile(rb"^(?:@\d+ )?(?:\d+ )?MIOpen\((?:HIP|OpenCL)\)", re.MULTILINE)


class Line(NamedTuple):
    """One line of the log. `at_ns` is NULL without a stamp; `level` is `Call` for the argument
    blocks of API logging.
    """

    at_ns: int
    tid: int
    level: str
    function: str
    text: str


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """At least one line of the log, also behind other text."""
    return _SNIFF.search(head) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """Ranges without length, one per line of a stamped log; of one without stamps the counts of its
    lines alone.

    Raises InputError when no line is of the log.
    """
    raw = TextLines(path, lines_of(path))
    lines, other_lines = parse_lines(raw)
    if not lines:
        raise InputError(
            f"{path} holds no line of a MIOpen log",
            "record it with MIOPEN_ENABLE_LOGGING_CMD=1 or MIOPEN_LOG_LEVEL=5",
        )
    timed = [line for line in lines if line.at_ns != NULL]
    strings = Strings()
    marks = Marks.build(
        start_ns=np.array([line.at_ns for line in timed], np.int64),
        dur_ns=np.zeros(len(timed), np.int64),
        source=0,
        name=strings.codes(
            [log_names.library_line(line.level, line.function, line.text) for line in timed]
        ),
        kind=strings.code("range"),
        tid=np.array([line.tid for line in timed], np.int64),
    )
    levels = Counter(line.level for line in lines)
    details = (
        *((f"lines of level {level}", str(count)) for level, count in sorted(levels.items())),
        *(("command", line.text) for line in lines if line.level == "Command"),
    )
    source = Source(
        str(path),
        name,
        ClockDomain.MONOTONIC if timed else ClockDomain.UNKNOWN,
        has_host_calls=False,
        details=details,
    )
    return Trace(
        sources=(source,),
        strings=strings,
        marks=marks,
        problems=(
            *_problems(path, lines, other_lines, raw.damage),
            *open_line(path, is_open=raw.is_open),
        ),
    )


def parse_lines(text_lines: Iterable[str]) -> tuple[list[Line], int]:
    """The lines of the log in order, and how many others there are that are not empty."""
    lines: list[Line] = []
    other_lines = 0
    known: dict[str, Line] = {}  # a program says the same again and again
    for raw in text_lines:
        again = known.get(raw)
        if again is not None:
            lines.append(again)
            continue
        match = _LINE.match(raw)
        if match is None:
            other_lines += bool(raw.strip())
            continue
        message = _MESSAGE.match(match["text"])
        at, tid = (_number(match[key]) for key in ("at", "tid"))
        lines.append(
            Line(at, tid, message["level"], message["function"], message["text"].strip())
            if message
            else Line(at, tid, "Call", "", match["text"].strip())
        )
        if at == NULL and len(known) < _KNOWN:
            known[raw] = lines[-1]
    return lines, other_lines


def _number(text: str | None) -> int:
    """NULL where the line has none, or one that no column holds."""
    number = whole(text) if text else None
    return NULL if number is None or number > LATEST_NS else number


def _problems(path: Path, lines: list[Line], other_lines: int, damage: str) -> list[Problem]:
    where = str(path)
    problems = []
    unstamped = sum(line.at_ns == NULL for line in lines)
    if unstamped:
        problems.append(
            Problem(
                "info",
                where,
                unstamped,
                "lines have no time: MIOpen writes none, and they were not stamped as they "
                "arrived, which --profile amd-log does",
            )
        )
    if unstamped < len(lines):
        problems.append(
            Problem(
                "info",
                where,
                len(lines) - unstamped,
                "lines are stamped with when they arrived, not when they were written",
            )
        )
    building = sum(log_names.builds(line.function) for line in lines)
    if building:
        problems.append(
            Problem(
                "info",
                where,
                building,
                "lines tell of kernels being compiled or tuned: "
                "such iterations are no steady state",
            )
        )
    if other_lines:
        problems.append(
            Problem(
                "info",
                where,
                other_lines,
                "lines are no lines of the log (text of the program) and were passed over",
            )
        )
    if damage:
        problems.append(Problem("error", where, 1, f"the file is cut or damaged: {damage}"))
    return problems

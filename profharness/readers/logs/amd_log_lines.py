"""Records of a HIP log from its lines.

The runtime writes one record per line. What was copied from a terminal, or written by several
processes to one stream, has several records on one line, records whose ends stand on the next line,
and text of the program in between. So a record begins wherever its header stands, and a line
without one continues the record before it where that is plainly not at its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import NamedTuple

# file and line are empty where the mask has no LOCATION; some builds print `NNNd us`
_RECORD = re.compile(r":\d+:\S*\s*:\d+\s*: (\d{1,15})d? us: ?(.*)\Z")
_INSIDE = re.compile(r":\d:\S*\s*:\d+\s*: (\d{10,15})d? us: ")
_UNTIMED = re.compile(r"Warning: |:\s?\d+:\S*\s*:\d+\s*: ")
_END_OF_HEADER = " us: "
_WORD = re.compile(r"\w*")
_ENTRY = re.compile(r"_*i?hip\w+\Z")
_CUT_WORD = re.compile(r"(?:.*\])?\s*(?:\w* ?|\w+: ?\w* ?|\w+: Returned ?\w*)\Z")
_SHADER = re.compile(r"ShaderName\s*:\s*(.*)\Z")
_MANGLED = re.compile(r"_Z[\w.$]*\Z")
_REST_OF_MANGLED = re.compile(r"(?=[\w.$]*E)(?=[\w.$]*[\d_])[\w.$]+\Z")
_PAIRS = ("()", "[]", "{}")
_NARROWEST = 79  # of a terminal in which a line is wrapped
_HEAD = 4096  # lines that tell of a terminal's width
_LONGEST = 8192  # a message has up to 4096 bytes


class Record(NamedTuple):
    """One record: its time in us, as text, and what stands behind. `row` is how many columns its
    last line has, with blanks at the end.
    """

    time: str
    rest: str
    row: int


def records(lines: Iterator[str], counts: Counter[str]) -> Iterator[Record]:
    """The records in the order in which they stand. Other lines that are not empty are counted, as
    `untimed` where the runtime wrote them.
    """
    head = list(islice(lines, _HEAD))
    width = _width(head)
    held: Record | None = None
    for line in chain(head, lines):
        match = _RECORD.match(line)
        if match is not None and _END_OF_HEADER not in match[2]:
            if held is not None:
                yield held
            held = Record(match[1], match[2], len(line))
            continue
        before, found = _parts(line, match)
        if held is not None and not found and _goes_on(held, line, width):
            held = Record(held.time, held.rest + line.rstrip(), len(line))
            counts["wrapped"] += 1
            continue
        if before.strip():
            counts["untimed" if _UNTIMED.match(before) else "other text"] += 1
        counts["together"] += max(len(found) - 1, 0)
        for record in found:
            if held is not None:
                yield held
            held = record
    if held is not None:
        yield held


def _parts(line: str, first: re.Match[str] | None) -> tuple[str, list[Record]]:
    """What stands in front of the first record of a line, and its records; `first` is the match of
    one at the line's begin.
    """
    inside = list(_INSIDE.finditer(line, 1)) if _END_OF_HEADER in line else []
    ends = [match.start() for match in inside] + [len(line)]
    found = []
    if first is not None:
        found.append(Record(first[1], line[first.start(2) : ends[0]].rstrip(), ends[0]))
    for match, end in zip(inside, ends[1:], strict=True):
        # blanks fill a row of the terminal; the last row alone may go on
        rest = line[match.end() : end]
        found.append(
            Record(match[1], rest if end == len(line) else rest.rstrip(), end - match.start())
        )
    return "" if first is not None else line[: ends[0]], found


def _width(lines: Sequence[str]) -> int:
    """Columns of the terminal from which a log was copied: of the rows in which a packet or call is
    cut off, as most have; 0 where none is.
    """
    cut: Counter[int] = Counter()
    for line, following in pairwise(lines):
        _, found = _parts(line, _RECORD.match(line))
        if (
            found
            and _is_open(found[-1].rest, found[-1].row)
            and not _parts(following, _RECORD.match(following))[1]
        ):
            cut[found[-1].row] += 1
    return max(cut, key=lambda row: (cut[row], row), default=0)


def _is_open(rest: str, row: int) -> bool:
    """Whether a packet has no signal yet, or a call no closing bracket."""
    if "Dispatch Header = " in rest:
        return "completion_signal=0x" not in rest
    if "Wq=0x" in rest and "Header" not in rest:
        return row >= _NARROWEST
    return ")" not in rest and begins_entry(rest)


def begins_entry(rest: str) -> bool:
    """Whether a call of HIP stands before the first bracket, which opens. Only the word there is
    looked at: a record may have thousands of characters before it.
    """
    before, bracket, _ = rest.partition("(")
    if not bracket or ")" in before:
        return False
    backwards = before.removesuffix(" ")[::-1]
    word = _WORD.match(backwards)
    return word is not None and _ENTRY.match(word[0][::-1]) is not None


def _goes_on(record: Record, line: str, width: int) -> bool:
    """Whether a line without a header continues the record: its call has no closing bracket, its
    packet no signal, it fills the row of a terminal of `width` columns, or its kernel's name or its
    first word is cut.
    """
    rest, row = record.rest, record.row
    if not line.strip() or len(rest) + len(line) > _LONGEST or _UNTIMED.match(line):
        return False
    if _is_open(rest, row):
        return True
    if width and row % width == 0 and not rest.endswith(" "):
        return True
    if shader := _SHADER.search(rest):
        return _name_goes_on(shader[1], line, row)
    return row >= _NARROWEST and _CUT_WORD.match(rest) is not None


def _name_goes_on(name: str, line: str, row: int) -> bool:
    """Whether a kernel's name ends on the next line. A mangled one does not say where it ends: what
    follows has to fill as many columns or to look like the end of a mangled name.
    """
    if _MANGLED.match(name) is None:
        return any(name.count(pair[0]) > name.count(pair[1]) for pair in _PAIRS)
    text = line.rstrip()
    return row >= _NARROWEST and (
        (len(line) == row and " " not in text) or _REST_OF_MANGLED.match(text) is not None
    )

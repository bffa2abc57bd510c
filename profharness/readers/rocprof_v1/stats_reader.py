"""The statistics that rocprof v1 makes of its records: results.stats.csv (kernels), .hip_stats,
.hsa_stats, .copy_stats.

Five columns. Releases of 2021 write names without quotes although C++ names hold commas: a row is
split from its end. Tools of other vendors, and copies, write numbers in quotes too, and a row of
totals.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import is_open, open_line, read_fields
from profharness.readers.bytes.limits import whole
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.statistics import COPIES, KERNELS, StatRow, ends_in_total
from profharness.trace.wanted import Wanted

name = "rocprof-stats"

_HEADER = ["Name", "Calls", "TotalDurationNs", "AverageNs", "Percentage"]
_NUMBERS = len(_HEADER) - 1
_FILE = re.compile(r"[._](?:(hip|hsa|copy|kfd)_)?stats\.csv(?:\.gz)?$")
_COPY = re.compile(r"Copy\w+To\w+$|FillBuffer$")
_CALLS = (("hip", re.compile(r"_*hip\w+$")), ("hsa", re.compile(r"hsa_\w+$")))


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """The header; rocprofv3 writes more columns."""
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("ascii", "replace")
    return [column.strip().strip('"') for column in first.split(",")] == _HEADER


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The rows as statistics, in the order of the file. Raises InputError when it cannot be read or
    no row can.
    """
    text, damage = read_fields(path)
    lines = [line for line in text.splitlines()[1:] if line.strip()]
    fields = [_fields(line) for line in lines]
    good = [row for row in fields if row is not None]
    if lines and not good:
        raise InputError(
            f"{path} holds no row with whole numbers",
            "use the file as rocprof wrote it, not one that a spreadsheet saved",
        )
    lost = len(lines) - len(good)
    if ends_in_total([row[0] for row in good], [row[2] for row in good]):
        del good[-1]
    domain = _domain(path.name, [row[0] for row in good])
    rows = tuple(StatRow(label, domain, calls, total) for label, calls, total in good)
    problems = []
    if damage:
        problems.append(
            Problem(
                "error",
                str(path),
                1,
                f"the file is cut or damaged: {damage}; {len(good)} rows were read",
            )
        )
    problems += open_line(path, is_open=is_open(text))
    if lost:
        problems.append(
            Problem(
                "warning",
                str(path),
                lost,
                "rows hold no whole numbers and were left out",
            )
        )
    if not lines:
        problems.append(
            Problem(
                "warning",
                str(path),
                1,
                "the file is complete and holds no row: the program did no work that the tool saw",
            )
        )
    source = Source(str(path), name, ClockDomain.UNKNOWN, has_host_calls=False)
    return Trace(sources=(source,), strings=Strings(), statistics=rows, problems=tuple(problems))


def _fields(line: str) -> tuple[str, int, int] | None:
    """Name, calls and total time of a row; None where they are no whole numbers."""
    label, *numbers = line.rsplit(",", _NUMBERS)
    if len(numbers) != _NUMBERS:
        return None
    calls, total = (whole(number.strip().strip('"')) for number in numbers[:2])
    if calls is None or calls < 0 or total is None or total < 0:
        return None
    label = label.strip()
    if len(label) > 1 and label.startswith('"') and label.endswith('"'):
        label = label[1:-1].replace('""', '"')
    return label, calls, total


def _domain(file: str, names: Sequence[str]) -> str:
    """What was counted, by the file's name; of a renamed file, by what all its rows are called."""
    if match := _FILE.search(file):
        return {None: KERNELS, "copy": COPIES}.get(match[1], match[1])
    forms = ((COPIES, _COPY), *_CALLS)
    return next(
        (domain for domain, form in forms if names and all(form.match(label) for label in names)),
        KERNELS,
    )

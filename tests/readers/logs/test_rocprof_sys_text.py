"""wall_clock tables of rocprof-sys: both generations of columns, threads and ranks, the time of a
row itself.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.errors import InputError
from profharness.readers.logs.rocprof_sys_text import own_ns, parse_rows

SYS = "fixtures/rocm/rocprof_sys"
TITLE = "|            REAL-CLOCK TIMER (I.E. WALL-CLOCK TIMER)            |\n"
NEWER = (
    "| LABEL | COUNT | DEPTH | METRIC | UNITS | SUM | MEAN | MIN | MAX | VAR | STDDEV | % "
    "SELF |\n|---|---|\n"
)
OLDER = (
    "| LABEL | COUNT | DEPTH | METRIC | UNITS | SUM | MEAN | MIN | MAX | STDDEV | % SELF "
    "|\n|---|---|\n"
)
TREE = (
    "| |00>>> main         | 1 | 0 | wall_clock | sec | 1.500000 | 1.5 | 1.5 | 1.5 | {} 0.0 | "
    "33.3 |\n"
    "| |00>>> |_a | b        | 4 | 1 | wall_clock | sec | 0.600000 | 0.1 | 0.1 | 0.1 | {} 0.0 "
    "| 50.0 |\n"
    "| |00>>>   |_inner    | 2 | 2 | wall_clock | sec | 0.300000 | 0.1 | 0.1 | 0.1 | {} 0.0 | "
    "100.0 |\n"
    "| |01>>>   |_thread   | 1 | 1 | wall_clock | sec | 0.400001 | 0.4 | 0.4 | 0.4 | {} 0.0 | "
    "100.0 |\n"
    "| |01>>> inner        | 1 | 0 | wall_clock | msec | 2.5 | 2.5 | 2.5 | 2.5 | {} 0.0 | 100.0 |\n"
)


@pytest.mark.parametrize(("header", "extra"), [(NEWER, "0.0 |"), (OLDER, "")])
def test_the_time_of_a_row_is_its_sum_less_that_of_the_rows_below(
    tmp_path: Path, header: str, extra: str
) -> None:
    path = tmp_path / "wall_clock-1.txt"
    path.write_text(TITLE + header + TREE.replace("{}", extra))
    trace = readers.read(path)
    assert trace.sources[0].format == "rocprof-sys-text"
    table = hotspots.default(trace)
    assert table.by == "op"
    assert [(row.name, row.calls, row.total_ns) for row in table.rows] == [
        ("main", 1, 499_999_000),
        ("thread", 1, 400_001_000),
        ("inner", 3, 302_500_000),
        ("a | b", 4, 300_000_000),
    ]


def test_ranks_stand_before_threads() -> None:
    row = "| |02|13>>> |_f | 1 | 0 | wall_clock | sec | 1.0 | 1 | 1 | 1 | 0 | 0 | 100.0 |"
    rows, unreadable = parse_rows([*NEWER.splitlines(), row])
    assert unreadable == 0
    assert [(row.rank, row.thread, row.label) for row in rows] == [(2, 13, "f")]


def test_a_header_for_each_thread_is_read_on() -> None:
    rows, unreadable = parse_rows(2 * (TITLE + NEWER + TREE.replace("{}", "0.0 |")).splitlines())
    assert (len(rows), unreadable) == (10, 0)


def test_a_row_that_does_not_fit_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "wall_clock.txt"
    path.write_text(
        TITLE
        + NEWER
        + TREE.replace("{}", "0.0 |")
        + "| |00>>> half | 1 | 0 | wall_clock | sec | 1.0\n"
    )
    assert [p.count for p in readers.read(path).problems if p.severity == "warning"] == [1]


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wall_clock.txt"
    path.write_text(TITLE + NEWER)
    with pytest.raises(InputError, match="no row"):
        readers.read(path)


@pytest.mark.parametrize(
    ("file", "count", "depth"),
    [
        ("docs_wall_clock_nas_cg.txt", 173, 8),
        ("wall_clock_jacobi_openmp_cxx_a.txt", 15, 2),
        ("wall_clock_jacobi_openmp_cxx_b.txt", 13, 0),
    ],
)
def test_recorded_tables(shared: Path, file: str, count: int, depth: int) -> None:
    rows, unreadable = parse_rows((shared / SYS / file).read_text().splitlines())
    assert (len(rows), unreadable, max(row.depth for row in rows)) == (count, 0, depth)
    for row, own in zip(rows, own_ns(rows), strict=True):
        # the tool prints the share to a tenth, and its sums to a microsecond
        slack = 0.06 + 100 * 3000 / max(row.sum_ns, 1)
        assert abs(100 * own / max(row.sum_ns, 1) - row.self_percent) <= slack or row.sum_ns == 0
    trace = readers.read(shared / SYS / file)
    assert sum(row.calls for row in trace.statistics) == sum(row.count for row in rows)


def test_the_first_recorded_row(shared: Path) -> None:
    rows, _ = parse_rows((shared / SYS / "docs_wall_clock_nas_cg.txt").read_text().splitlines())
    first = rows[0]
    assert (
        first.label,
        first.thread,
        first.count,
        first.depth,
        first.sum_ns,
        first.self_percent,
    ) == ("main", 0, 1, 0, 13_360_265_000, 18.2)

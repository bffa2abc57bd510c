"""Lines of logs: as Python splits the whole text, whatever the blocks; and no more of them than a
file of its size can hold."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.readers.bytes import text_lines
from profharness.readers.bytes.limits import LARGEST, lines_of, printed_rows_of
from profharness.readers.bytes.text_lines import TextLines
from profharness.readers.logs import amd_log, miopen_log, rocprof_sys_text
from profharness.rundir import blocks

RECORD = ":3:hip_memory.cpp:1: 812345678901 us: [pid:1 tid:0x2] hipFree: Returned hipSuccess :"
COMMAND = "MIOpen(HIP): Command [F] ./bin/MIOpenDriver conv"
TREE = ["| wall_clock |", "| LABEL | COUNT | DEPTH | METRIC | UNITS | SUM |"]
ROW = "| |0>>> main | 1 | 0 | wall_clock | sec | 1.0 |"


@given(
    st.text(st.sampled_from("ab\n\r\x0b\u2028é\ufeff"), min_size=1, max_size=60),
    st.integers(2, 9),
)
def test_lines_are_those_of_the_whole_text(tmp_path_factory, text: str, size: int) -> None:
    path = tmp_path_factory.mktemp("lines") / "x.log"
    path.write_bytes(text.encode())
    lines = TextLines(path, LARGEST)
    lines._blocks = blocks.Blocks(path, size, text=True)
    assert list(lines) == text.removeprefix("\ufeff").splitlines()
    assert lines.is_open == (not text.endswith(("\n", "\r")))
    assert lines.damage == ""


def test_a_line_without_end_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_bytes(b"a" * (5 * text_lines.LONGEST_LINE) + b"\nb\n")
    first, second = TextLines(path, LARGEST)
    assert text_lines.LONGEST_LINE <= len(first) < 4 * text_lines.LONGEST_LINE
    assert second == "b"


def test_a_plain_file_may_hold_any_number_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("\n" * 10)
    assert lines_of(path) == printed_rows_of(path) == LARGEST
    assert lines_of(tmp_path / "absent") == LARGEST


@pytest.mark.parametrize(
    ("reader", "head", "line", "bound"),
    [
        (amd_log, [], RECORD, lines_of),
        (miopen_log, [], COMMAND, lines_of),
        (rocprof_sys_text, TREE, ROW, printed_rows_of),
    ],
)
def test_more_lines_than_a_gzipped_file_can_hold_are_left(
    tmp_path: Path, monkeypatch, reader, head: list[str], line: str, bound
) -> None:
    monkeypatch.setattr("profharness.readers.bytes.limits._LINES", 1000)
    monkeypatch.setattr("profharness.readers.bytes.limits._ROWS", 1000)
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress("\n".join([*head, *[line] * 80_000, ""]).encode()))
    most = bound(path)
    assert 1000 < most < 9000
    trace = reader.read(path)
    (damage,) = [problem for problem in trace.problems if problem.severity == "error"]
    assert "more lines than a file of its size can" in damage.message
    assert max(problem.count for problem in trace.problems) < 80_000

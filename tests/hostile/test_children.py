"""A child that does what no answer may do is seen to do it: each rule fails where it is broken."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hostile.children import MOST_MEMORY, Ended
from tests.hostile.judging import faults, impossible

LINE = ("metrics", "--json", "x")

# stands in for the program's entry, in a process that has nothing else in it
RUN = """
import json, sys, pathlib
from tests.hostile import children
def entry(line):
    exec(line[0])
    return 0
children._entry = entry
children._WAITED = 1.5
ended = children.run((sys.argv[1],), pathlib.Path(sys.argv[2]))
print(json.dumps([ended.status, ended.out.decode(), ended.err.decode(), ended.seconds, ended.waited, ended.memory]))
"""


def ended(code: str, folder: Path) -> Ended:
    import json

    done = subprocess.run(
        [sys.executable, "-c", RUN, code, str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    status, out, err, seconds, waited, memory = json.loads(done.stdout)
    return Ended(status, out.encode(), err.encode(), seconds, waited, memory)


def test_what_a_child_says_on_either_way_is_kept(tmp_path: Path) -> None:
    found = ended("import os; os.write(2, b'below'); print('above', flush=True)", tmp_path)
    assert (found.status, found.out, found.err, found.waited) == (0, b"above\n", b"below", False)
    assert faults(("metrics",), found, 0) == ()


def test_memory_is_counted_beyond_that_of_the_parent(tmp_path: Path) -> None:
    """Less than a tenth of it is the child's own life."""
    found = ended("x = b'1' * (600 << 20)", tmp_path)
    assert 590 << 20 <= found.memory < 660 << 20
    assert faults(("metrics",), found, 0) == ("held more than 500 MB",)
    assert faults(("metrics",), found, 200 << 20) == ()
    small = ended("pass", tmp_path)
    assert small.memory < MOST_MEMORY // 10


def test_a_child_that_waits_is_ended(tmp_path: Path) -> None:
    found = ended("import os; os.mkfifo('pipe'); open('pipe')", tmp_path)
    assert found.waited
    assert [text.partition(" (")[0] for text in faults(LINE, found, 0)] == ["waited for ever"]


def test_an_error_that_escapes_and_one_that_is_ignored_are_told(tmp_path: Path) -> None:
    escaped = ended("raise ValueError('x')", tmp_path)
    assert any("said 'Traceback': ValueError: x" in text for text in faults(LINE, escaped, 0))
    code = "class A:\n  def __del__(self): 1 / 0\na = A()\na.me = a\ndel a\nimport gc; gc.collect()"
    assert any("Exception ignored" in text for text in faults(("ls",), ended(code, tmp_path), 0))


def test_a_signal_and_a_status_are_told(tmp_path: Path) -> None:
    killed = ended("import os; os.abort()", tmp_path)
    assert killed.status == -6
    assert any("ended with -6" in text for text in faults(LINE, killed, 0))


@pytest.mark.parametrize(
    ("status", "out", "err", "wrong"),
    [
        (0, b"{}", b"", ""),
        (4, b"", b"error: x is damaged\n  copy it again", ""),
        (4, b"", b"Something else", "ended with 4, and began with"),
        (1, b"", b"error: profharness itself failed: KeyError", "itself failed"),
        (0, b'{"a": nan', b"", "is no JSON"),
        (2, b"", b"error: x exists", "ended with 2"),
        (0, b'{"rows": [{"total_ns": -5}]}', b"", "negative"),
    ],
)
def test_the_rules_of_an_ending(status: int, out: bytes, err: bytes, wrong: str) -> None:
    found = faults(LINE, Ended(status, out, err, 0.1, waited=False, memory=0), 0)
    assert (wrong in "; ".join(found)) if wrong else not found


GOOD = {
    "trace": {"kernels": 3, "devices": 1, "span_ns": 100, "busy_ns": 60, "busy_any_ns": 70, "sum_kernel_ns": 80},
    "devices": {"2": {"kernels": 3, "busy_ns": 60, "busy_any_ns": 70, "span_ns": 100}},
    "partition": {"window_ns": 100, "unknown_work_ns": 60, "idle_no_host_record_ns": 40},
    "metrics": {"busy": {"value": 0.6, "unit": "share", "low": 0.5, "high": 0.7}},
}  # fmt: skip


def test_possible_figures_are_passed() -> None:
    assert impossible(GOOD) == []
    assert impossible({"by": "kernel", "total_ns": 10, "rows": [{"name": "k", "calls": 2, "total_ns": 10,
                       "min_ns": 4, "mean_ns": 5.0, "max_ns": 6, "share": 1.0}]}) == []  # fmt: skip


@pytest.mark.parametrize(
    ("where", "value", "wrong"),
    [
        (("trace", "busy_ns"), 75, "more than busy_any_ns"),
        (("trace", "busy_any_ns"), 130, "more than span_ns"),
        (("trace", "sum_kernel_ns"), 50, "more than sum_kernel_ns"),
        (("trace", "distinct_kernels"), 9, "more than kernels"),
        (("trace", "kernels"), 4, "the devices have 3"),
        (("devices", "2", "busy_any_ns"), 101, "more than span_ns"),
        (("partition", "window_ns"), 101, "make a window of 101"),
        (("partition", "unknown_work_ns"), -1, "negative"),
        (("metrics", "busy", "value"), 1.2, "share of 1.2"),
        (("metrics", "busy", "low"), 0.9, "interval from 0.9"),
    ],
)
def test_impossible_figures_are_told(where: tuple[str, ...], value: float, wrong: str) -> None:
    import copy

    document = copy.deepcopy(GOOD)
    place = document
    for name in where[:-1]:
        place = place[name]  # type: ignore[assignment, index]  # one more level of the same kind
    place[where[-1]] = value  # type: ignore[assignment]  # as above
    assert any(wrong in text for text in impossible(document))


@pytest.mark.parametrize(
    ("row", "wrong"),
    [
        ({"total_ns": 11}, "make a total of 10"),
        ({"share": 1.1}, "share of 1.1"),
        ({"mean_ns": 7.5}, "a mean of 7.5"),
        ({"calls": 0}, "0 calls"),
    ],
)
def test_impossible_rows_are_told(row: dict[str, float], wrong: str) -> None:
    whole = {"name": "k", "calls": 2, "total_ns": 10, "min_ns": 4, "mean_ns": 5.0, "max_ns": 6, "share": 1.0}  # fmt: skip
    found = impossible({"by": "kernel", "total_ns": 10, "rows": [{**whole, **row}]})
    assert any(wrong in text for text in found)

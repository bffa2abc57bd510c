"""Every tool in every version of its own that a ROCm release brought: planned, run on the stand-in
that takes exactly what that version takes, and read to the nanosecond.

What the command lines are in every release stands in `tests/layers/test_golden.py`.
"""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest

from profharness.layers import releases
from profharness.layers.releases import BEFORE
from tests.fakes.stand_in_node import Node
from tests.layers.test_golden import RELEASES, V1_ROWS
from tests.variants import but_for

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds
COLUMNS = {"rocprofv3": "sdk", "rocprof-sys": "systems", "rocprof-compute": "compute"}
KERNELS, TOTAL_NS = 5, 100_000  # of the program that is run


def cells() -> list[tuple[str, str]]:
    """A tool and the first release with each of its own versions; rocprof has no versions, so that
    its first and its last release stand for all.
    """
    found = []
    for tool, column in COLUMNS.items():
        rows = sorted(releases.RELEASES, key=lambda row: (getattr(row, column), row.rocm))
        for own, same in groupby(rows, key=lambda row: getattr(row, column)):
            first = releases.text(next(iter(same)).rocm)
            if (own != BEFORE or tool != "rocprofv3") and first in RELEASES:
                found.append((tool, first))
    shipped = [release for release in RELEASES if V1_ROWS[release][0]]
    return [*found, ("rocprof", shipped[0]), ("rocprof", shipped[-1])]


ENDS = {
    ends[at]
    for _, of in groupby(cells(), lambda cell: cell[0])
    for ends in [[*of]]
    for at in (0, -1)
}


@pytest.mark.parametrize(("tool", "release"), but_for(cells(), ENDS.__contains__))
def test_a_version_is_run_and_read(tmp_path: Path, tool: str, release: str) -> None:
    node = Node(tmp_path, release)
    done = node.run("--profile", tool, "--quiet")
    assert done.returncode == 0, done.stderr
    assert [found for found in node.manifest.findings if found.severity == "error"] == []
    assert node.kernels() == (tool, KERNELS, TOTAL_NS)
    assert [problem for problem in node.trace.problems if problem.severity == "error"] == []


def test_no_version_is_left_out() -> None:
    tested = {
        (tool, getattr(row, COLUMNS[tool]))
        for tool, release in cells()
        if tool in COLUMNS
        for row in releases.RELEASES
        if releases.text(row.rocm) == release
    }
    known = {(tool, getattr(row, COLUMNS[tool])) for tool in COLUMNS for row in releases.RELEASES}
    assert known - tested == {("rocprofv3", BEFORE)}  # it came with ROCm 6.2

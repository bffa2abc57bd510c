"""The lock by which tests marked `alone` have the machine for themselves."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests import quiet

pytest_plugins = ("pytester",)
ROOT = Path(__file__).resolve().parent.parent.parent
SUITE = """
import time
import pytest

def span(path):
    begin = time.monotonic_ns()
    while time.monotonic_ns() < begin + 40_000_000:
        pass
    path.write_text(f"{begin} {time.monotonic_ns()}")

@pytest.fixture
def log(request):
    return request.config.rootpath / f"{request.node.name.partition('@')[0]}.span"

@pytest.mark.parametrize("at", range(12))
def test_beside_others(log, at):
    span(log)

@pytest.mark.alone
@pytest.mark.parametrize("at", range(3))
def test_alone(log, at):
    span(log)
"""


def spans(folder: Path, name: str) -> list[tuple[int, int]]:
    found = [tuple(map(int, path.read_text().split())) for path in folder.glob(f"{name}*.span")]
    return [(begin, end) for begin, end in found]


@pytest.mark.slow
def test_nothing_runs_beside_a_test_that_wants_to_be_alone(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        f"import sys\nsys.path.insert(0, {str(ROOT)!r})\nfrom tests.conftest import "
        "pytest_runtest_protocol, pytest_unconfigure"
    )
    pytester.makeini("[pytest]\nmarkers = alone: as in the real suite")
    pytester.makepyfile(test_it=SUITE)
    ran = pytester.run(sys.executable, "-m", "pytest", "-q", "-n", "3", "-p", "no:cacheprovider")
    ran.assert_outcomes(passed=15)
    others, alone = spans(pytester.path, "test_beside"), spans(pytester.path, "test_alone")
    assert (len(others), len(alone)) == (12, 3)
    for begin, end in alone:
        beside = [(a, b) for a, b in [*others, *alone] if a < end and b > begin]
        assert beside == [(begin, end)]


def test_the_files_of_a_test_run_go_with_it() -> None:
    controller = os.getpid() + (1 << 22)  # above every pid
    with quiet.turn(controller, alone=True):
        assert all(path.exists() for path in quiet.files(controller))
    for path in quiet.files(controller):
        path.unlink()

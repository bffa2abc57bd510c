"""With how many threads operators were recorded, and what is said where that cannot be followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.readers.own import sidecar
from profharness.trace.model import Source
from profharness.understand.replay.recorded import recorded
from profharness.understand.replay.threads import RecordedThreads, recorded_threads
from tests.analysis.replay.calls import relu, written
from tests.readers.kineto.kineto_files import write


def told(count: int, **variables: str) -> Source:
    """The source of a trace whose sidecar tells this."""
    beside = sidecar.Sidecar(1, threads=sidecar.Threads(count, variables))
    return Source("trace.json", "kineto", details=beside.details)


def of(*sources: Source, environ: dict[str, str] | None = None, cores: int = 8) -> RecordedThreads:
    return recorded_threads(sources, None, environ or {}, cores)


def test_the_number_is_that_of_the_trace():
    assert of(told(3), Source("spans.json", "kineto")) == RecordedThreads(3, "trace")


def test_a_trace_that_tells_nothing_leaves_it_to_torch():
    assert of(Source("trace.json", "kineto")) == RecordedThreads()


def test_processes_that_differ_are_told():
    found = of(told(1), told(4))
    assert (found.count, found.told_by) == (None, "")
    assert found.notes == ("the processes of the trace had 1 to 4 threads: choose with --threads",)


@pytest.mark.parametrize(("count", "taken"), [(8, 8), (9, None)])
def test_a_number_far_beyond_the_cores_here_is_not_followed(count: int, taken: int | None):
    found = of(told(count), cores=2)
    assert found.count == taken
    assert bool(found.notes) == (taken is None)


def test_variables_that_bind_threads_are_named_where_they_differ():
    source = told(2, OMP_PROC_BIND="close", OMP_NUM_THREADS="2", KMP_BLOCKTIME="0")
    assert of(source, environ={"KMP_BLOCKTIME": "0"}).notes == (
        "recorded with OMP_PROC_BIND=close: set it here too for threads that behave alike",
    )
    assert of(source, environ={"KMP_BLOCKTIME": "0", "OMP_PROC_BIND": "close"}).notes == ()


def test_a_file_is_read_with_the_threads_beside_it(tmp_path: Path):
    path = written(tmp_path / "trace.json", relu(0, 10), record_shapes=1)
    assert recorded([path]).threads == RecordedThreads()
    write(tmp_path / "trace.json.profharness.json", {"v": 1, "threads": {"intra_op": 1}})
    assert recorded([path]).threads == RecordedThreads(1, "trace")


@pytest.mark.parametrize(
    "threads",
    [{"intra_op": 0}, {"intra_op": -3}, {"intra_op": 1, "variables": {"A": "x" * 201}}, 7],
)
def test_damaged_numbers_are_a_problem_of_the_sidecar(tmp_path: Path, threads: object):
    write(tmp_path / "t.json.profharness.json", {"v": 1, "threads": threads})
    beside, problems = sidecar.load_or_report(tmp_path / "t.json")
    assert beside.details == ()
    assert len(problems) == 1

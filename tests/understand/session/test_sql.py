"""Questions in SQL: to a trace processor that the user has, and to no other."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import profharness
from profharness.cli import run_cli
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.run_files import run_of
from tests.trace_processor import (
    SERVER,
    _node,
    trace_processor_folder,  # noqa: F401  a fixture
)

VARIABLE = "PROFHARNESS_TRACE_PROCESSOR"


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> profharness.Recording:
    events = [launch("hipLaunchKernel", 4, 2, 1), kernel("gemm", 8, 30.5, correlation=1)]
    path = write(tmp_path_factory.mktemp("sql") / "trace.json", document(events))
    return profharness.read(path)


@pytest.fixture
def served(request, monkeypatch):
    """One that runs already, at an address; it ends with the test."""
    folder = request.getfixturevalue("trace_processor_folder")
    server = subprocess.Popen(
        [_node(), "--liftoff-only", str(SERVER), str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    line = server.stdout.readline()
    monkeypatch.setenv(VARIABLE, f"127.0.0.1:{line.split()[1]}")
    yield
    server.communicate(input="", timeout=90)


@pytest.mark.slow
def test_the_answer_is_about_the_merged_trace(recording, served):
    frame = recording.sql("select name, dur from slice where name = 'gemm'")
    assert frame.values.tolist() == [["gemm", 30_500]]


@pytest.mark.slow
def test_a_wrong_query_is_the_askers_error(recording, served):
    with pytest.raises(profharness.UsageError, match="no such table"):
        recording.sql("select * from slices_of_cake")


@pytest.mark.slow
def test_of_a_run_its_own_merged_trace_is_asked(recording, served, tmp_path: Path):
    run = run_of(tmp_path / "run", ranks=1, kernels=2)
    assert run_cli(["merge", *map(str, recording.paths), "-o", str(run.merged)]) == 0
    frame = profharness.open(run.root).sql("select count(*) as n from slice where name = 'gemm'")
    assert frame["n"].tolist() == [1]


def test_without_a_trace_processor_nothing_is_fetched(recording, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("perfetto.trace_processor.TraceProcessor", None)
    with pytest.raises(profharness.UsageError, match=f"{VARIABLE} is not set") as told:
        recording.sql("select 1")
    assert "downloads none" in told.value.hint


def test_a_place_that_is_none_is_told(recording, monkeypatch, tmp_path: Path):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "none"))
    with pytest.raises(profharness.UsageError, match="no such program, and it is no HOST:PORT"):
        recording.sql("select 1")
    broken = tmp_path / "shell"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setenv(VARIABLE, str(broken))
    with pytest.raises(profharness.Unavailable, match="does not answer"):
        recording.sql("select 1")

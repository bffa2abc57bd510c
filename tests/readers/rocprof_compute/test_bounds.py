"""Folders of rocprof-compute that were made to cost much are refused with one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.readers.bytes import limits
from profharness.readers.rocprof_compute import folder as workload_folder
from profharness.readers.rocprof_compute import reader
from profharness.understand.load import load
from tests.readers.rocprof_compute.test_replays import execution, table
from tests.steps import calls_of


def workload(folder: Path, count: int) -> Path:
    """A folder with tables of so many executions."""
    folder.mkdir(exist_ok=True)
    for number in range(count):
        table(folder / f"results_pmc_perf_{number}.csv.gz", execution(number))
    return folder


def refused(folder: Path) -> str:
    with pytest.raises(InputError) as caught:
        load([folder])
    return caught.value.message


def test_more_executions_than_a_device_has_counters_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workload(tmp_path / "w", 4)
    assert len(load([folder]).trace.kernels) == 6
    monkeypatch.setattr(reader, "EXECUTIONS", 3)
    said = f"{folder} holds tables of 4 executions, more than the 3 that are read"
    assert refused(folder) == said


def test_more_fields_than_all_tables_explain_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workload(tmp_path / "w", 3)
    size = sum(path.stat().st_size for path in folder.iterdir())
    fields = 3 * 12 * 17
    monkeypatch.setattr(limits, "_TABLES_FIELDS", fields - size)
    assert len(load([folder]).trace.kernels) == 6
    monkeypatch.setattr(limits, "_TABLES_FIELDS", fields - size - 1)
    assert "its tables hold more fields than files of their size do" in refused(folder)


def test_a_folder_is_held_to_the_bounds_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = workload(tmp_path / "w", 2)
    monkeypatch.setattr(limits, "_CHARACTERS", 0)
    monkeypatch.setattr(limits, "_FILE_CHARACTERS", 0)
    assert "its kernels have names of" in refused(folder)


def test_an_execution_does_not_look_through_the_others(tmp_path: Path) -> None:
    def calls(count: int) -> int:
        folder = workload(tmp_path / f"w{count}", count)
        return calls_of(lambda: workload_folder.holds(folder))

    calls(3)  # what is imported and kept
    few, more = calls(20), calls(80)
    assert more < 4.3 * few

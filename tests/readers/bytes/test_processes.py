from __future__ import annotations

import json
from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.readers import read
from profharness.readers.bytes.limits import PROCESSES


def _calls_of(path: Path, processes: int) -> Path:
    calls = [
        {"ph": "X", "cat": "cuda_runtime", "name": "f", "pid": 1 + at, "tid": 1, "ts": at, "dur": 1}
        for at in range(processes)
    ]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": calls}, indent=None))
    return path


def test_more_processes_than_a_file_of_its_size_has_are_refused(tmp_path: Path) -> None:
    some = read(_calls_of(tmp_path / "some.pt.trace.json", PROCESSES))
    assert len(set(some.api.pid.tolist())) == PROCESSES
    with pytest.raises(InputError, match=r"are of 600 processes, more than the 518 that a file"):
        read(_calls_of(tmp_path / "many.pt.trace.json", 600))

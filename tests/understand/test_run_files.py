"""Artifacts of a run are read in their order, by as many processes as it takes, and none is
fatal.
"""

from __future__ import annotations

import json

import pytest

from profharness.understand import run_files as gather
from profharness.understand.many import spread
from tests.readers.kineto.kineto_files import document, kernel, launch, write


@pytest.mark.parametrize("processes", [1, 2])
def test_files_come_in_order_whoever_reads_them(tmp_path, monkeypatch, processes):
    if processes > 1:
        monkeypatch.setattr(gather, "_LONG", 1)
        monkeypatch.setattr(spread, "_WORTH_A_POOL", 0)
    paths = [
        write(
            tmp_path / f"{n}.json",
            document(
                [
                    event
                    for i in range(n)
                    for event in (
                        launch("hipLaunchKernel", i, 1, i + 1),
                        kernel("k", 10 + i, 1, correlation=i + 1),
                    )
                ]
            ),
        )
        for n in (3, 1, 2)
    ]
    unknown = tmp_path / "unknown.json"
    unknown.write_text(json.dumps({"nothing": "known"}))
    found = gather._read([(path,) for path in (*paths, unknown, tmp_path / "absent.json")])
    assert [len(trace.kernels) for trace in found[:3]] == [3, 1, 2]
    assert "no known trace format" in found[3]
    assert "does not exist" in found[4]

"""`merge --critical-path`: the path as a track of its process, which sums to the window."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.understand.load import load
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests.readers.kineto.kineto_files import document, kernel, launch, op
from tests.readers.kineto.kineto_files import write as write_json
from tests.writers.decode import decode

PATH = "critical path"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """An operator that launches a kernel, and the kernel, which ends last."""
    return write_json(
        tmp_path / "a.json",
        document(
            [
                op("aten::mm", 100, 10, 1),
                launch("hipLaunchKernel", 106, 2, 1),
                kernel("gemm", 112, 30, correlation=1),
            ]
        ),
    )


def test_the_path_is_a_track_beside_the_steps(trace: Path, tmp_path: Path) -> None:
    target = tmp_path / "with.pftrace"
    merge_to_file([trace], target, MergeOptions(critical_path=True))
    got = decode(target)
    path = [shown for shown in got.slices if got.path(shown.track)[-1] == PATH]
    assert [(shown.name.partition(":")[0], shown.dur) for shown in path] == [
        ("host", 6_000), ("launch latency", 6_000), ("kernels", 30_000),
    ]  # fmt: skip
    assert got.path(path[0].track)[-2:] == ("Benchmark", PATH)


def test_a_merged_file_gives_the_same_figures_with_the_track(trace: Path, tmp_path: Path) -> None:
    for name, asked in (("plain", False), ("with", True)):
        options = MergeOptions(critical_path=asked)
        merge_to_file([trace], tmp_path / f"{name}.pftrace", options)
    plain, other = (load([tmp_path / f"{name}.pftrace"]).trace for name in ("plain", "with"))
    for (table, records), (_, same) in zip(plain.tables(), other.tables(), strict=True):
        assert len(records) == len(same), table


def test_several_files_have_no_such_track(trace: Path, tmp_path: Path) -> None:
    other = tmp_path / "b.json"
    other.write_bytes(trace.read_bytes())
    with pytest.raises(UsageError, match="--critical-path is for one run or file"):
        merge_to_file([trace, other], tmp_path / "m.pftrace", MergeOptions(critical_path=True))
    assert not (tmp_path / "m.pftrace").exists()

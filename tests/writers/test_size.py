"""What a kernel costs: bytes in the file, and memory while it is written."""

from __future__ import annotations

import importlib.util
import tracemalloc
from pathlib import Path
from types import ModuleType

import pytest

from profharness.writers.perfetto import write


@pytest.fixture(scope="module")
def benchmark_module(repository: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "write_perfetto", repository / "benchmarks" / "write_perfetto.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(
            str(repository / "benchmarks")
        )  # as when it is started, for the modules beside it
        spec.loader.exec_module(module)
    return module


def test_a_kernel_with_its_launch_takes_at_most_75_bytes(
    benchmark_module: ModuleType, tmp_path: Path
) -> None:
    few, many = (
        write(benchmark_module.kernel_trace(n, 0), tmp_path / f"{n}.pftrace").bytes
        for n in (20_000, 120_000)
    )
    per_kernel = (many - few) / 100_000  # names and the rest are written once
    assert 40 < per_kernel <= 75


def test_memory_grows_with_row_numbers_only(benchmark_module: ModuleType, tmp_path: Path) -> None:
    def peak(kernels: int) -> int:
        trace = benchmark_module.kernel_trace(kernels, 0)
        tracemalloc.start()
        write(trace, tmp_path / "t.pftrace")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    # a row has about ten numbers of 8 bytes while it is joined; its encoded form would take 73 and
    # its slots 200 more
    assert (peak(300_000) - peak(100_000)) / 200_000 < 160

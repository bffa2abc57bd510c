"""Rates, shares of the peak and excess of rows: over which of a row's calls each is formed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.tally import Grouping
from profharness.analysis.operators.engine import read_input
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.understand.load import load
from profharness.understand.many.tables import hotspots_of_files
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108}
MM = {"Input Dims": [[1024, 1024], [1024, 1024]], "Input type": ["float", "float"]}
FLOPS = 2 * 1024**3
BIG = {"Input Dims": [[1 << 26], [1 << 26]], "Input type": ["float", "float"]}
MOVED = 2 * 4 * (1 << 26)
EVERY_GEMM = """
[[formula]]
match = "gemm"
kind = "expression"
kernel = true
flops = "1000"
"""


def called(number: int, name: str, shapes: dict[str, Any], *, call: str = "hipLaunchKernel") -> Any:
    """An operator that makes one call."""
    start = 100 * number
    return [
        op(name, start, 20, number, **shapes),
        launch(call, start + 5, 2, number),
    ]


def table(path: Path, events: list[Any], by: Grouping, **more: Any) -> Hotspots:
    write(path, document(events, deviceProperties=[A100]))
    return hotspots_of_files([path], by, **more).table


def row(rows: Hotspots, name: str) -> HotspotRow:
    (found,) = (one for one in rows.rows if one.name == name)
    return found


def test_a_call_whose_kernel_is_not_in_the_file_is_in_no_rate(tmp_path: Path) -> None:
    events = [
        *called(1, "aten::mm", MM),
        kernel("gemm", 1000, 500, correlation=1),
        *called(2, "aten::mm", MM),
    ]
    found = row(table(tmp_path / "t.json", events, "op"), "aten::mm")
    assert (found.flops, found.flops_calls) == (2 * FLOPS, 2)
    assert found.flops_per_s == pytest.approx(FLOPS / 500e-6)


def test_a_transfer_of_the_host_is_no_time_that_a_kernel_would_give_back(tmp_path: Path) -> None:
    events = [
        *called(1, "aten::copy_", BIG),
        kernel("elementwise_kernel", 1000, 400, correlation=1),
        *called(2, "aten::copy_", BIG, call="hipMemcpyAsync"),
        event(
            "gpu_memcpy",
            "Memcpy HtoD (Host -> Device)",
            2000,
            10_000,
            pid=0,
            tid=7,
            correlation=2,
            device=0,
            stream=7,
            bytes=1 << 28,
        ),
    ]
    found = row(table(tmp_path / "t.json", events, "op"), "aten::copy_")
    assert found.device_ns == 10_400_000
    assert found.bytes == 2 * MOVED
    assert found.excess_ns is not None
    assert 0 < found.excess_ns < 400_000
    assert found.peak_share == pytest.approx(1 - found.excess_ns / 400_000)


@pytest.mark.parametrize(("unknown_us", "is_rated"), [(20, True), (200, False)])
def test_a_kernel_has_a_rate_where_most_of_its_time_is_known(
    tmp_path: Path, unknown_us: int, is_rated: bool
) -> None:
    events = [
        *called(1, "aten::mm", MM),
        kernel("gemm", 1000, 500, correlation=1),
        *called(2, "mine::product", MM),
        kernel("gemm", 2000, unknown_us, correlation=2),
    ]
    found = row(table(tmp_path / "t.json", events, "kernel", ops=True), "gemm")
    assert found.flops == FLOPS
    assert found.flops_per_s == (pytest.approx(FLOPS / 500e-6) if is_rated else None)


def test_a_formula_for_kernels_needs_no_operators(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(EVERY_GEMM)
    given = read_input((tmp_path / "mine.toml",))
    events = [launch("hipLaunchKernel", 5, 2, 1), kernel("gemm", 100, 10, correlation=1)]
    found = table(tmp_path / "t.json", events, "kernel", operator_input=given)
    assert row(found, "gemm").flops == 1000
    facts = KernelFacts(load([tmp_path / "t.json"]).trace, Yardstick(operator_input=given))
    assert facts.tells_work


def test_kernels_without_times_are_no_device_time(shared: Path) -> None:
    path = shared / "fixtures/kineto/a100_cupti_range_counters.json.gz"
    found = hotspots_of_files([path], "op").table
    assert found.device_ns_outside is None
    assert {(one.device_ns, one.device_share) for one in found.rows} == {(None, None)}

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.curves.records import Capacity
from profharness.analysis.records import Figure, PointKernel, PointSummary
from profharness.analysis.run.series import run_series
from tests.analysis.curves.curves_simulation import BATCHES, batch_truth


def scan(kernels):
    """Ten batch sizes with a jump of 1.6 at 128, each point with the kernels that `kernels` gives
    for its batch size.
    """
    rates = batch_truth(BATCHES, 25_000, 100, 1.0) * np.where(BATCHES >= 128, 1.6, 1.0)
    return tuple(
        PointSummary(
            point=f"b{level:g}",
            backend="torch",
            batch_size=int(level),
            throughput=float(rate),
            throughput_sem=float(rate) * 0.005,
            kernels=tuple(
                PointKernel(name=name, calls=1, total_ns=100, share=1.0) for name in kernels(level)
            ),
        )
        for level, rate in zip(BATCHES, rates, strict=True)
    )


def step_message(kernels):
    (series,) = run_series(scan(kernels), (), "x")
    (found,) = [one for one in series.findings if one.id == "step"]
    assert series.step.at == 128
    assert series.step.ratio == pytest.approx(1.6, rel=0.05)
    return found.message


def test_a_jump_names_the_kernels_that_switch_there():
    message = step_message(lambda level: ("tile_128x128",) if level >= 128 else ("tile_64x64",))
    assert (
        "kernels switch there: gone: tile_64x64 (100.0 % of kernel time); new: tile_128x128"
        in message
    )


def test_a_jump_of_the_same_kernels_says_so():
    assert step_message(lambda _: ("gemm",)).endswith("kernels are the same on both sides")


def test_without_a_trace_nothing_is_said_of_kernels():
    assert "kernels" not in step_message(lambda _: ())


def test_the_servers_cores_and_the_network_are_those_of_the_level_nearest_to_the_knee():
    def level(clients: int) -> PointSummary:
        rate = 50.0 * min(clients, 8)
        figures = {
            "server_cores": 0.1 * min(clients, 8),
            "load_sent": 1000 * rate,
            "load_received": 200 * rate,
        }
        return PointSummary(
            point=f"c{clients}",
            backend="torch",
            mode="closed",
            concurrency=clients,
            batch_size=4,
            throughput=rate,
            throughput_sem=rate * 0.002,
            metrics={name: Figure(value=value, unit="") for name, value in figures.items()},
        )

    (series,) = run_series(
        tuple(level(clients) for clients in (1, 2, 4, 6, 8, 12, 16, 32)), (), "x"
    )
    assert series.knee.n == pytest.approx(8, rel=0.1)
    assert series.capacity == Capacity(
        at=8, server_cores=pytest.approx(0.8), network_bytes_per_s=pytest.approx(1200 * 400)
    )

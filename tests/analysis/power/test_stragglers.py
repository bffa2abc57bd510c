"""Which node of a job of four stands apart, over 200 generated joint logs: devices of one kind
differ by some per cent anyway, in power and in clock, and so do nodes.
"""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.power.nodes import findings
from profharness.analysis.power.unit_spread import MULTIPLES
from tests.analysis.power.test_nodes import of
from tests.stats.several_nodes import cluster

LOGS = 200


def named(seed: int, scatter: float, slow: str = "", factor: float = 1.0) -> set[str]:
    """The hosts of the findings. All of the node `slow` draws and clocks less by `factor`."""
    rng = np.random.default_rng(seed)
    hosts = [f"n{number}" for number in range(4)]
    by = {host: factor if host == slow else 1.0 for host in hosts}
    watts = {host: (300 * by[host] * rng.normal(1, scatter, 2)).tolist() for host in hosts}
    clocks = {host: (2100 * by[host] * rng.normal(1, scatter, 2)).tolist() for host in hosts}
    meters = {host: 900 * by[host] * rng.normal(1, scatter) for host in hosts}
    log = cluster(watts, clocks=clocks, node_watts=meters, seed=seed, noise=0.02)
    return {str(one.figures["host"]) for one in findings(of(log))}


@pytest.mark.slow
@pytest.mark.parametrize("scatter", [0.01, 0.02])
def test_quiet_jobs_name_a_node_in_one_of_twenty_at_most(scatter: float) -> None:
    assert sum(bool(named(seed, scatter)) for seed in range(LOGS)) <= LOGS / 20


@pytest.mark.slow
@pytest.mark.parametrize(("scatter", "least"), [(0.01, 0.95), (0.02, 0.7)])
def test_a_slow_node_is_named_and_no_other(scatter: float, least: float) -> None:
    """15 % less power and clock. The more the nodes differ anyway, the less often one can tell."""
    found = [(f"n{seed % 4}", named(seed, scatter, f"n{seed % 4}", 0.85)) for seed in range(LOGS)]
    assert sum(hosts == {slow} for slow, hosts in found) >= least * LOGS
    assert sum(bool(hosts - {slow}) for slow, hosts in found) <= LOGS / 20


def test_a_slow_node_is_named_in_a_few_logs() -> None:
    assert [named(seed, 0.01, "n2", 0.8) for seed in range(4)] == [{"n2"}] * 4
    assert [named(seed, 0.01) for seed in range(4)] == [set()] * 4


@pytest.mark.parametrize("others", [3, 5, 7, 11, 15])
def test_the_multiples_are_what_like_units_exceed(others: int) -> None:
    rng = np.random.default_rng(others)
    unit, rest = rng.normal(size=300_000), rng.normal(size=(300_000, others))
    middle = np.median(rest, axis=1)
    distances = np.sort(np.abs(rest - middle[:, None]), axis=1)
    kept = others - (others // 4 if others >= 7 else 0)
    scatter = np.sqrt((distances[:, :kept] ** 2).sum(axis=1) / (kept - 1))
    limit = np.quantile(np.abs(unit - middle) / scatter, 1 - 0.05 / (others + 1))
    assert MULTIPLES[others] == pytest.approx(limit, rel=0.06)

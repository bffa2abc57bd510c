"""Level figures against queueing theory on simulated requests, and what must hold for any."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.load.findings import level_findings
from profharness.rundir.levels import Level, ServerStats
from profharness.stats.load import level_figures
from profharness.stats.load_figures import LevelFigures
from profharness.stats.load_parts import (
    COMPUTE_INFER,
    MODEL,
    QUEUE,
    TRANSPORT,
    TRANSPORT_BACK,
    TRANSPORT_OUT,
)
from profharness.trace.columns.table import NULL
from profharness.trace.model import Requests

S, MS = 1_000_000_000, 1_000_000


def table(intended: np.ndarray, sent: np.ndarray, done: np.ndarray, **columns: object) -> Requests:
    return Requests.build(
        len(sent),
        **{
            "intended_ns": intended,
            "sent_ns": sent,
            "done_ns": done,
            "think_ns": 0,
            "items": 1,
            "ok": 1,
            "client": 0,
            **columns,
        },
    )


def first_come_first_served(arrivals: np.ndarray, service: np.ndarray, servers: int) -> np.ndarray:
    """Ends of jobs at `servers` equal servers, in the order of arrival."""
    free = np.zeros(servers)
    done = np.empty(len(arrivals))
    for at, (when, length) in enumerate(zip(arrivals, service, strict=True)):
        one = int(free.argmin())
        free[one] = done[at] = max(free[one], when) + length
    return done


def open_level(rate: float, service: np.ndarray, servers: int, seed: int) -> LevelFigures:
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, len(service)))
    done = first_come_first_served(arrivals, service, servers)
    start, end = arrivals[len(arrivals) // 20], arrivals[-len(arrivals) // 50]
    level = Level(
        mode="open", rate=rate, window_start_ns=int(start * S), window_end_ns=int(end * S)
    )
    at = (arrivals * S).astype(np.int64)
    return level_figures(table(at, at, (done * S).astype(np.int64)), level)


def test_m_m_1_at_seventy_percent() -> None:
    # Kleinrock 1975: the time in an M/M/1 system is exponential with mean 1 / (mu - lambda)
    mu, rate = 1000.0, 700.0
    figures = open_level(rate, np.random.default_rng(1).exponential(1 / mu, 200_000), 1, 2)
    mean = 1 / (mu - rate)
    assert figures.corrected is not None
    assert figures.corrected.mean.value == pytest.approx(mean * S, rel=0.05)
    for q in (50.0, 90.0, 99.0):
        assert figures.corrected.percentile(q).value_ns == pytest.approx(
            -math.log(1 - q / 100) * mean * S, rel=0.1
        )
    assert figures.throughput.value == pytest.approx(rate, rel=0.02)
    assert figures.little.expected == pytest.approx(rate * mean, rel=0.06)
    assert figures.little.holds
    assert figures.settled
    assert not level_findings(figures)


def test_m_d_1_mean_wait() -> None:
    # Pollaczek and Khinchine: W = rho D / (2 (1 - rho)) for constant service
    service, rho = 0.02, 0.7
    figures = open_level(rho / service, np.full(100_000, service), 1, 3)
    assert figures.service is not None
    assert figures.service.mean.value == pytest.approx(
        (service + rho * service / (2 * (1 - rho))) * S, rel=0.05
    )


def test_m_d_n_has_less_wait_with_more_servers() -> None:
    service, rho = 0.02, 0.7
    one, four = (open_level(rho * n / service, np.full(40_000, service), n, 4) for n in (1, 4))
    assert one.service is not None
    assert four.service is not None
    waits = [
        (figures.service.mean.value or 0) / S - service
        for figures in (one, four)
        if figures.service
    ]
    # Cosmetatos 1975: the wait of M/D/4 at 70 % is about a fifth of M/D/1's
    assert waits[1] / waits[0] == pytest.approx(0.2, abs=0.05)


@pytest.mark.slow
def test_the_intervals_hold_the_truth_as_often_as_they_say() -> None:
    mu, rate = 100.0, 50.0
    truth = 1 / (mu - rate)
    hits = rates = p90 = 0
    runs = 60
    for seed in range(runs):
        figures = open_level(
            rate, np.random.default_rng(1000 + seed).exponential(1 / mu, 4000), 1, seed
        )
        assert figures.service is not None
        low, high = figures.service.mean.low, figures.service.mean.high
        hits += low is not None and high is not None and low <= truth * S <= high
        rates += (figures.throughput.low or 0) <= rate <= (figures.throughput.high or 0)
        tail = figures.service.percentile(90.0)
        p90 += (tail.low_ns or 0) <= math.log(10) * truth * S <= (tail.high_ns or 0)
    assert hits >= 0.8 * runs
    assert rates >= 0.85 * runs
    assert p90 >= 0.8 * runs


def closed_level(
    clients: int,
    servers: int,
    service: float,
    think: float = 0.0,
    rounds: int = 200,
    jitter: float = 0.0,
    seed: int = 5,
) -> tuple[Requests, Level]:
    """A closed loop event by event: each client thinks, queues, is served."""
    rng = np.random.default_rng(seed)
    ready = [(think * (one + 1) / clients, one) for one in range(clients)]
    free = np.zeros(servers)
    rows = []
    for _ in range(clients * rounds):
        ready.sort()
        due, one = ready.pop(0)
        slot = int(free.argmin())
        done = max(free[slot], due) + service * (1 + jitter * float(rng.standard_normal()))
        free[slot] = done
        rows.append((due, done, one))
        ready.append((done + think, one))
    rows.sort()
    due, done = (np.array([row[at] * S for row in rows]).astype(np.int64) for at in (0, 1))
    end = int(due.max() * 0.9)
    level = Level(
        mode="closed", concurrency=clients, window_start_ns=int(due.max() * 0.1), window_end_ns=end
    )
    return table(due, due, done, think_ns=int(think * S)), level


@pytest.mark.parametrize(("clients", "think"), [(1, 0.0), (2, 0.0), (4, 0.0), (8, 0.0), (6, 0.1)])
def test_closed_loop_figures(clients: int, think: float) -> None:
    requests, level = closed_level(clients, 2, 0.02, think)
    figures = level_figures(requests, level)
    assert figures.little.holds
    assert figures.request_rate == pytest.approx(min(2 / 0.02, clients / (0.02 + think)), rel=0.03)


@pytest.mark.parametrize(("clients", "widest"), [(1, 0.03), (3, 0.07), (6, 0.03)])
def test_answers_that_come_evenly_or_in_bursts_have_a_throughput_that_is_well_known(
    clients: int, widest: float
) -> None:
    """A count is off by what the window's ends cut, not by what its inner stretches cut from each
    other: as independent they would say 8 to 9 % of bursts.
    """
    truth, widths, hits = min(clients, 3) / 0.02, [], 0
    for seed in range(40):
        figures = level_figures(
            *closed_level(clients, 3, 0.02, rounds=180 // clients, jitter=0.02, seed=seed)
        )
        low, high = figures.throughput.low, figures.throughput.high
        assert low is not None
        assert high is not None
        assert figures.throughput_sem, "never nothing: each end of the window cuts a gap"
        hits += low <= truth <= high
        widths.append((high - low) / 2 / truth)
    assert np.mean(widths) < widest
    assert hits >= 35


def test_a_wrong_throughput_breaks_littles_law() -> None:
    # as when requests are divided by a longer time than they took
    requests, level = closed_level(4, 2, 0.02)
    longer = msgspec.structs.replace(
        level, window_end_ns=int(requests.done_ns.max()) + 3 * level.window_ns
    )
    figures = level_figures(requests, longer)
    assert not figures.little.holds
    assert "littles-law" in {one.id for one in level_findings(figures)}


def test_rows_that_are_missing_break_littles_law() -> None:
    requests, level = closed_level(4, 2, 0.02)
    figures = level_figures(requests.take(np.arange(len(requests)) % 5 != 0), level)
    assert not figures.little.holds


def test_corrected_latency_does_not_forgive_a_stall() -> None:
    # a server that stands still for a second, and a generator that waits for it (Tene's coordinated
    # omission)
    intended = np.arange(0, 10 * S, 10 * MS)
    sent = np.where((intended >= 5 * S) & (intended < 6 * S), 6 * S, intended)
    requests = table(intended, sent, sent + MS)
    level = Level(mode="open", rate=100.0, window_start_ns=0, window_end_ns=10 * S + 2 * MS)
    figures = level_figures(requests, level)
    assert figures.service is not None
    assert figures.corrected is not None
    assert figures.service.percentile(99.0).value_ns == pytest.approx(MS)
    assert figures.corrected.percentile(99.0).value_ns == pytest.approx(0.9 * S, rel=0.03)
    assert "generator-bound" in {one.id for one in level_findings(figures)}


def test_a_server_that_cannot_keep_the_rate_is_not_the_generators_fault() -> None:
    # 100 a second are due, 50 are served, and a client that ran out of connections sends the rest
    # late
    intended = np.arange(0, 10 * S, 10 * MS)
    sent = np.maximum.accumulate(np.arange(len(intended)) * 20 * MS)
    requests = table(intended, sent, sent + 20 * MS)
    level = Level(mode="open", rate=100.0, window_start_ns=0, window_end_ns=10 * S, cpu_ns=S)
    assert {"rate-not-reached"} == {
        one.id for one in level_findings(level_figures(requests, level))
    } - {"unstable-level"}
    busy = msgspec.structs.replace(level, cpu_ns=int(9.5 * S))
    assert {"rate-not-reached", "generator-bound"} <= {
        one.id for one in level_findings(level_figures(requests, busy))
    }


def test_a_rate_that_is_kept_is_no_finding() -> None:
    intended = np.arange(0, 10 * S, 10 * MS)
    requests = table(intended, intended, intended + 5 * MS)
    level = Level(mode="open", rate=100.0, window_start_ns=0, window_end_ns=10 * S, cpu_ns=S)
    assert level_findings(level_figures(requests, level)) == ()


def test_a_busy_client_process_is_the_limit() -> None:
    requests, level = closed_level(2, 2, 0.02)
    busy = msgspec.structs.replace(level, cpu_ns=int(1.9 * level.window_ns), clients=2)
    (one,) = level_findings(level_figures(requests, busy))
    assert one.id == "generator-bound"
    assert "95 % of a core" in one.message
    assert not level_findings(level_figures(requests, msgspec.structs.replace(busy, clients=4)))


def test_a_drift_inside_the_window_is_unstable() -> None:
    done = np.cumsum(np.linspace(10, 20, 400) * MS).astype(np.int64)
    sent = np.concatenate([[0], done[:-1]])
    level = Level(mode="closed", concurrency=1, window_start_ns=0, window_end_ns=int(done[-1]))
    figures = level_figures(table(sent, sent, done), level)
    assert not figures.settled
    (one,) = level_findings(figures)
    assert one.id == "unstable-level"
    assert "throughput by -" in one.message


def test_failures_are_counted_and_not_in_the_rate() -> None:
    requests, level = closed_level(2, 2, 0.02)
    ok = np.where(np.arange(len(requests)) % 4 == 0, 0, 1)
    figures = level_figures(requests.with_columns(ok=ok), level)
    assert figures.failed_share == pytest.approx(0.25, abs=0.01)
    assert figures.request_rate == pytest.approx(75, rel=0.03)
    assert figures.little.holds
    assert {one.id for one in level_findings(figures)} == {"errors"}


def test_a_level_without_answers_has_no_latency() -> None:
    requests, level = closed_level(2, 2, 0.02)
    figures = level_figures(requests.with_columns(ok=0), level)
    assert figures.service is None
    assert figures.throughput.value == 0
    assert figures.parts is None
    assert {one.id for one in level_findings(figures)} == {"errors"}
    assert level_figures(Requests.empty(), level).requests == 0
    with pytest.raises(ValueError, match="no length"):
        level_figures(requests, msgspec.structs.replace(level, window_end_ns=level.window_start_ns))


def test_percentiles_need_ten_requests_beyond() -> None:
    requests, level = closed_level(1, 1, 0.02, rounds=120)
    figures = level_figures(requests, level)
    assert figures.service is not None
    assert figures.service.percentile(90.0).value_ns is None or figures.requests >= 100
    assert figures.service.percentile(99.0).value_ns is None
    assert "1000" in figures.service.percentile(99.0).needs


def stats(
    requests: int, queue_ms: float, infer_ms: float, *, executions: int | None = None
) -> ServerStats:
    return ServerStats(
        queue_ns=int(requests * queue_ms * MS),
        compute_input_ns=requests * MS // 10,
        compute_infer_ns=int(requests * infer_ms * MS),
        compute_output_ns=requests * MS // 5,
        success=requests,
        count=requests,
        exec_count=executions or requests,
        batch_sizes={"1": executions or requests},
    )


def test_parts_sum_to_the_latency_and_tell_the_ways_apart() -> None:
    sent = np.arange(100) * 20 * MS
    # out 1, queue 3, input 0.1, hand-over 0.5, model 8, hand-over 0.5, output 0.2, back 2
    start = sent + int(4.6 * MS)
    done = start + 8 * MS + int(2.7 * MS)
    requests = table(sent, sent, done, server_start_ns=start, server_compute_ns=8 * MS)
    level = Level(
        mode="closed",
        concurrency=1,
        window_start_ns=0,
        window_end_ns=3 * S,
        server_stats={"m": stats(100, 3, 9)},
    )
    parts = level_figures(requests, level).parts
    assert parts is not None
    assert parts.complete
    # of 3 ms transport half, since it lies between what the clock allows: 1.5 less the hand-over of
    # 1 ms, and 1.5
    assert parts.mean_ns(TRANSPORT_OUT) == pytest.approx(1.5 * MS, rel=1e-6)
    assert parts.mean_ns(QUEUE) == pytest.approx(3 * MS)
    assert parts.mean_ns(MODEL) == pytest.approx(8 * MS)
    assert parts.mean_ns(TRANSPORT_BACK) == pytest.approx(1.5 * MS, rel=1e-6)
    alone = level_figures(
        requests.with_columns(server_start_ns=NULL, server_compute_ns=NULL), level
    ).parts
    assert alone is not None
    assert alone.mean_ns(TRANSPORT) == pytest.approx(3 * MS, rel=1e-6)
    assert alone.mean_ns(COMPUTE_INFER) == pytest.approx(9 * MS)
    unknown = level_figures(requests, msgspec.structs.replace(level, server_stats=None)).parts
    assert unknown is not None
    assert [part.name for part in unknown.parts] == ["before the model", "model", "after the model"]
    assert unknown.complete
    contradicting = level_figures(
        requests, msgspec.structs.replace(level, server_stats={"m": stats(100, 12, 9)})
    ).parts
    assert contradicting is not None
    assert not contradicting.complete


def test_a_long_way_out_is_told_from_a_long_way_back() -> None:
    sent = np.arange(100) * 40 * MS
    # out 15, queue 1, input 0.1, hand-over 0.5, model 8, hand-over 0.5, output 0.2, back 0.3
    start = sent + int(16.6 * MS)
    requests = table(sent, sent, start + 9 * MS, server_start_ns=start, server_compute_ns=8 * MS)
    level = Level(
        mode="closed",
        concurrency=1,
        window_start_ns=0,
        window_end_ns=5 * S,
        server_stats={"m": stats(100, 1, 9)},
    )
    parts = level_figures(requests, level).parts
    assert parts is not None
    assert parts.complete
    assert parts.mean_ns(TRANSPORT_OUT) == pytest.approx(15 * MS, abs=0.6 * MS)
    assert parts.mean_ns(TRANSPORT_BACK) == pytest.approx(0.3 * MS, abs=0.6 * MS)


def test_executions_on_another_clock_are_not_used() -> None:
    sent = np.arange(100) * 20 * MS
    requests = table(
        sent, sent, sent + 10 * MS, server_start_ns=sent + 3600 * S, server_compute_ns=8 * MS
    )
    level = Level(mode="closed", concurrency=1, window_start_ns=0, window_end_ns=3 * S)
    assert level_figures(requests, level).parts is None


def test_small_batches() -> None:
    requests, level = closed_level(8, 2, 0.02)
    many = msgspec.structs.replace(level, server_stats={"m": stats(600, 1, 10)})
    figures = level_figures(requests, many)
    assert figures.batches is not None
    assert figures.batches.mean == 1
    assert {one.id for one in level_findings(figures, max_batch_size=64)} == {"small-batches"}
    assert not level_findings(figures, max_batch_size=1)
    assert not level_findings(figures, max_batch_size=64, instances=8)


@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(1, 10**8), st.sampled_from([0, 1, NULL])),
        min_size=1,
        max_size=200,
    ),
    st.integers(0, 10**9),
    st.integers(1, 10**9),
)
def test_properties(rows: list[tuple[int, int, int]], start: int, length: int) -> None:
    sent = np.array([row[0] for row in rows])
    done = sent + np.array([row[1] for row in rows])
    level = Level(mode="open", rate=1.0, window_start_ns=start, window_end_ns=start + length)
    figures = level_figures(
        table(sent - 1, sent, done, ok=np.array([row[2] for row in rows])), level
    )
    assert figures.requests + figures.failed <= len(rows)
    assert 0 <= figures.failed_share <= 1
    assert figures.throughput.value == pytest.approx(figures.items / length * S)
    if figures.throughput.low is not None:
        assert (
            figures.throughput.low
            <= (figures.throughput.value or 0)
            <= (figures.throughput.high or 0)
        )
    for latency in (figures.service, figures.corrected):
        if latency is None:
            assert figures.requests == 0
            continue
        values = [one.value_ns for one in latency.percentiles if one.value_ns is not None]
        assert values == sorted(values)
        for one in latency.percentiles:
            if one.value_ns is not None and one.low_ns is not None and one.high_ns is not None:
                assert one.low_ns <= one.value_ns <= one.high_ns
    if figures.service is not None and figures.corrected is not None:
        assert (figures.corrected.mean.value or 0) - (
            figures.service.mean.value or 0
        ) == pytest.approx(1, abs=1e-3)
    # what is in flight never exceeds the rows, and shifting the clock changes nothing
    assert 0 <= figures.little.expected <= len(rows)
    later = msgspec.structs.replace(
        level, window_start_ns=start + 10**12, window_end_ns=start + length + 10**12
    )
    moved = level_figures(
        table(
            sent - 1 + 10**12, sent + 10**12, done + 10**12, ok=np.array([row[2] for row in rows])
        ),
        later,
    )
    assert (moved.requests, moved.failed, moved.little.expected) == (
        figures.requests,
        figures.failed,
        figures.little.expected,
    )

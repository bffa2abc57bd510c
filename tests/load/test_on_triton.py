"""The load generator on a real Triton: known service times against queueing theory, and the parts
of real requests.
"""

from __future__ import annotations

import heapq
import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir.requests_raw import INSTANCE, NUMBER, START, Executions, to_requests
from profharness.stats.load_figures import LevelFigures
from profharness.stats.load_parts import (
    COMPUTE_INPUT,
    COMPUTE_OUTPUT,
    HAND_OVER,
    MODEL,
    TRANSPORT_BACK,
    TRANSPORT_OUT,
)
from profharness.trace.model import Requests
from tests.load import running
from tests.variants import thorough
from tests.wrappers.triton import Server

if any(importlib.util.find_spec(name) is None for name in ("torch", "pytriton", "tritonclient")):
    pytest.skip("needs the extras torch and triton", allow_module_level=True)

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("triton-server")]
WHERE = "control/bare"


@contextmanager
def triton(tmp_path: Path, **spec: object) -> Iterator[Server]:
    server = Server(tmp_path / "server", {"name": "model", "threads": 1, **spec})
    try:
        yield server
        assert server.end()[0] == 0
    finally:
        server.kill()


def level(
    server: Server, spec: dict[str, object] | None = None, **params: object
) -> running.Outcome:
    # the worker of an earlier level has answered there
    (server.control.folder / "results-0-1.jsonl").unlink(missing_ok=True)
    wanted = {"model": "model", "managed": True, "shapes": {}, "inputs": "hep", **(spec or {})}
    done = running.level(server.control.run, server.ready_path, where=WHERE, spec=wanted, **params)
    assert done.result.ok, done.result.error + done.log
    assert "window" not in done.result.notes
    return done


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One jet tagger for all who send it requests."""
    folder = tmp_path_factory.mktemp("tagger")
    with triton(folder, model="particlenet", max_batch_size=16) as server:
        yield server


@pytest.mark.parametrize(
    ("spec", "params"),
    [
        ({"protocol": "grpc"}, {"concurrency": 2, "batch_size": 2}),
        *thorough(
            ({"protocol": "http"}, {"concurrency": 4}),
            ({"protocol": "grpc", "shared_memory": "system"}, {"concurrency": 2}),
        ),
    ],
)
def test_the_parts_of_a_jet_taggers_requests_sum_to_their_latency(
    tagger: Server, spec: dict[str, object], params: dict[str, object]
) -> None:
    key = "-".join([str(value) for value in (*spec.values(), *params.values())])
    done = level(tagger, spec, seconds=2.0, key=key, **params)
    raw = done.raw()
    requests = to_requests(raw)
    figures = done.figures()
    assert figures.little.holds, figures.little
    assert figures.parts is not None
    assert figures.parts.complete, figures.parts
    assert figures.parts.parts[0].name == TRANSPORT_OUT
    assert (figures.parts.mean_ns(MODEL) or 0) > 1e6
    # every answered request of the window names its execution, and lies around it
    answered = requests.take(
        (requests.ok == 1)
        & (requests.done_ns > done.level.window_start_ns)
        & (requests.done_ns <= done.level.window_end_ns)
    )
    assert (answered.execution >= 0).all()
    assert (answered.server_start_ns > answered.sent_ns).all()
    assert (answered.server_start_ns + answered.server_compute_ns < answered.done_ns).all()
    assert figures.batches is not None
    assert figures.server_cores is not None
    assert figures.server_cores > 0.1


def first_come_first_served(arrivals: np.ndarray, service: np.ndarray, servers: int) -> np.ndarray:
    """Times in a G/G/n system, job by job (Lindley's recursion for n servers)."""
    free = [0.0] * servers
    stay = np.empty(len(arrivals))
    for at, (when, length) in enumerate(zip(arrivals, service, strict=True)):
        begin = max(heapq.heappop(free), when)
        heapq.heappush(free, begin + length)
        stay[at] = begin + length - when
    return stay


def occupancy_ns(figures: LevelFigures) -> float:
    """How long a request keeps an instance, by the server's own statistics."""
    assert figures.parts is not None
    return sum(
        figures.parts.mean_ns(name) or 0.0
        for name in (COMPUTE_INPUT, HAND_OVER, MODEL, COMPUTE_OUTPUT)
    )


def cycles_ns(
    requests: Requests, executions: tuple[Executions, ...], on_the_way_ns: float
) -> np.ndarray:
    """From the start of each request's execution to the next one's on the same instance where that
    one waited already, else NaN.

    Then the instance had no rest between the two: this is how long it was taken, its hand-overs
    included.
    """
    place = {
        (number, start): (at, instance)
        for at, served in enumerate(executions)
        for number, start, instance in served.rows[:, [NUMBER, START, INSTANCE]].tolist()
    }
    instance = [
        place[key]
        for key in zip(requests.execution.tolist(), requests.server_start_ns.tolist(), strict=True)
    ]
    cycles = np.full(len(requests), np.nan)
    last: dict[tuple[int, int], int] = {}
    for at in np.argsort(requests.server_start_ns, kind="stable").tolist():
        before = last.get(instance[at])
        last[instance[at]] = at
        if (
            before is not None
            and requests.sent_ns[at] + on_the_way_ns
            < requests.server_start_ns[before] + requests.server_compute_ns[before]
        ):
            cycles[before] = requests.server_start_ns[at] - requests.server_start_ns[before]
    return cycles


@pytest.mark.alone
def test_a_known_server_serves_what_it_can_and_queues_as_theory_says(tmp_path: Path) -> None:
    """Two instances that sleep 20 ms. Closed loop: their plateau. Open loop at 70 % of it: the
    corrected latency's tail.

    Theory takes the arrivals as they were and the times that each request kept its instance as the
    server recorded them, so that the tail's own scatter is in both: on a busy machine the hand-over
    to the model's process varies by as much as the queue.
    """
    instances = 2
    with triton(tmp_path, model="sleep:20ms", max_batch_size=1, instances=instances) as server:
        full = level(server, {"inputs": "normal"}, concurrency=4, seconds=2.0, batch_size=1)
        plateau = full.figures()
        rate = 0.7 * plateau.request_rate
        done = level(
            server,
            {"inputs": "normal"},
            mode="open",
            arrivals="poisson",
            rate=rate,
            seconds=8.0,
            seed=4,
            batch_size=1,
            key="open",
        )
    assert plateau.request_rate == pytest.approx(instances * 1e9 / occupancy_ns(plateau), rel=0.1)
    assert plateau.little.holds
    figures = done.figures()
    assert figures.little.holds
    assert figures.parts is not None
    raw = done.raw()
    requests = to_requests(raw)
    known = requests.take((requests.ok == 1) & (requests.execution >= 0))
    known = known.take(np.argsort(known.sent_ns, kind="stable"))
    inside = (known.done_ns > done.level.window_start_ns) & (
        known.done_ns <= done.level.window_end_ns
    )
    transport = sum(figures.parts.mean_ns(name) or 0.0 for name in (TRANSPORT_OUT, TRANSPORT_BACK))
    cycles = cycles_ns(known, raw.executions, transport)
    told = cycles[~np.isnan(cycles)]
    assert len(told) > 0.2 * len(known), "too few requests waited for an instance at 70 % load"
    for name, lengths, spread in (
        ("executions of 20 ms", known.server_compute_ns, 1.15),
        ("uses of an instance", told, 1.25),
    ):
        if np.percentile(lengths, 95) > spread * np.median(lengths):
            pytest.skip(
                "the machine is too busy for a known service time: "
                f"5 % of the {name} took more than {np.percentile(lengths, 95) / 1e6:.0f} ms"
            )
    assert np.median(known.server_compute_ns) == pytest.approx(20e6, rel=0.1)
    service = np.where(np.isnan(cycles), occupancy_ns(figures), cycles)
    late = (
        known.sent_ns - known.intended_ns
    )  # the queue sees a request when it is sent; its corrected latency counts from before
    stay = (
        first_come_first_served(known.sent_ns.astype(float), service, instances) + late + transport
    )
    measured = known.done_ns - known.intended_ns
    for q in (50, 99):
        assert np.percentile(measured[inside], q) == pytest.approx(
            np.percentile(stay[inside], q), rel=0.1
        ), q

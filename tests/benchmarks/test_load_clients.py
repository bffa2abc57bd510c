"""The parts of the benchmark of load generators: its figures, and each library in a real client
process against a stand-in server.
"""

from __future__ import annotations

import importlib
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.load import running

WORKER = ROOT / "benchmarks" / "load_clients" / "library_worker.py"
# library: its protocol and its package
LIBRARIES = {
    "grpcio": ("grpc", "grpc"),
    "grpcio-asyncio": ("grpc", "grpc"),
    "h2": ("grpc", "h2"),
    "httpx": ("http", "httpx"),
    "http.client": ("http", "http"),
    "h11": ("http", "h11"),
}


@pytest.fixture(scope="module", autouse=True)
def paths() -> Iterator[None]:
    before = list(sys.path)
    sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "wrappers")]
    yield
    sys.path[:] = before


@pytest.fixture(scope="module")
def figures() -> ModuleType:
    return importlib.import_module("load_clients.figures")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Served]:
    pytest.importorskip("tritonclient.grpc")
    with running.server(tmp_path_factory.mktemp("server"), service_ms=5, slots=2) as one:
        yield one


# the figures


def test_a_ratio_is_of_one_round_and_its_interval_is_students(figures: ModuleType) -> None:
    # the machine is twice as slow in the second round, for both alike
    one = figures.ratio([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    assert (one.median, one.low, one.high) == pytest.approx((2.0, 2.0, 2.0))
    # two logarithms, +ln 2 and -ln 2: mean 0, deviation sqrt(2) ln 2, 12.7062 of Student's t
    one = figures.ratio([2.0, 0.5], [1.0, 1.0])
    assert one.median == pytest.approx(1.0)
    assert one.high == pytest.approx(2**12.7062, rel=1e-4)
    assert one.low == pytest.approx(1 / one.high)


def test_one_round_has_no_interval(figures: ModuleType) -> None:
    one = figures.ratio([3.0], [2.0])
    assert (one.low, one.high) == (None, None)
    assert str(one) == "1.500"


def test_cpu_per_request_counts_from_the_lead_to_the_last_new_request(figures: ModuleType) -> None:
    samples = [
        (0.0, 0, 0),  # not started yet
        (1.0, 9_000_000, 0),
        (2.0, 10_000_000, 100),  # the lead ends here
        (3.0, 15_000_000, 150),
        (4.0, 20_000_000, 200),  # the last requests
        (5.0, 90_000_000, 200),  # its report, which is no load
    ]
    assert figures.slope_us(samples, 1.0) == pytest.approx(100.0)


def compared(figures: ModuleType, *pairs: tuple[Any, Any]) -> Any:
    def seen(values: Any) -> Any:
        return None if values is None else figures.Seen(*values)

    rounds = [{"h2": seen(mine), "perf_analyzer": seen(theirs)} for mine, theirs in pairs]
    return figures.compared(figures.Place("sleep:10ms", "grpc", 4), "h2", rounds)


def test_rounds_without_one_of_the_two_do_not_count(figures: ModuleType) -> None:
    theirs = (100.0, 200.0, None)
    one = compared(figures, ((100.0, 300.0, True), theirs), ((1.0, 1.0, True), None))
    assert one.rounds == 1
    assert one.cpu.median == pytest.approx(1.5)
    assert one.verdict == "met"
    assert compared(figures, (None, theirs)) is None


@pytest.mark.parametrize(
    ("mine", "verdict"),
    [
        (((98.0, 200.0, True), (99.0, 200.0, True)), "met"),
        (((98.0, 320.0, True), (99.0, 310.0, True)), "missed"),
        (((98.0, 200.0, True), (99.0, 200.0, False)), "missed"),
        (((90.0, 200.0, True), (90.1, 200.0, True)), "missed"),
        (((80.0, 200.0, True), (100.0, 200.0, True)), "unclear"),
    ],
)
def test_the_verdict(figures: ModuleType, mine: tuple[Any, ...], verdict: str) -> None:
    assert compared(figures, *((one, (100.0, 200.0, None)) for one in mine)).verdict == verdict


# the libraries


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_puts_the_same_load_on_a_server(
    tmp_path: Path, served: running.Served, library: str
) -> None:
    protocol, package = LIBRARIES[library]
    pytest.importorskip(package)
    done = running.level(
        tmp_path,
        served.ready,
        worker=WORKER,
        env={"LOAD_LIBRARY": library},
        spec={"protocol": protocol, "clients": 1},
        concurrency=3,
        seconds=0.3,
        warmup_s=0.1,
    )
    assert done.result.ok, done.result.error + done.log
    figures = done.figures()
    assert figures.failed == 0
    assert figures.requests > 10
    assert done.level.cpu_ns
    # the server was asked with the numbers that were written down
    seen = served.seen()["seen"]
    assert isinstance(seen, list)
    assert set(done.raw().numbers.tolist()) <= {one["sequence"] for one in seen}


@pytest.mark.slow
def test_an_answer_that_is_an_error_is_told_by_either_machine() -> None:
    pytest.importorskip("h2")
    pytest.importorskip("h11")
    http2 = importlib.import_module("profharness_workloads.loadgen.http2")
    hpack = importlib.import_module("profharness_workloads.loadgen.hpack")
    over_h2 = importlib.import_module("load_clients.over_h2")
    over_h11 = importlib.import_module("load_clients.over_h11")
    one = over_h2.H2([(":method", "POST"), (":path", "/x"), (":scheme", "http")])
    assert one.opening().startswith(http2.PREFACE)
    assert one.begin(b"head", b"payload").endswith(struct.pack(">BI", 0, 11) + b"headpayload")
    answer = hpack.encode([(":status", "200"), ("grpc-status", "5"), ("grpc-message", "none")])
    assert one.feed(http2.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 1, answer))
    assert one.error == "gRPC status 5: none"

    two = over_h11.H11("/x", [("Host", "here")])
    asked = two.begin(b"head", b"payload", 4)
    assert asked.startswith(b"POST /x HTTP/1.1\r\n")
    assert asked.endswith(b"\r\n\r\nheadpayload")
    assert not two.feed(b"HTTP/1.1 404 Not Found\r\nContent-")
    assert two.feed(b"Length: 2\r\n\r\nno")
    assert two.error == "HTTP status 404"
    assert two.usable

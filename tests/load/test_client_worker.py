"""The load generator against a stand-in server with a known service time, through real processes
and sockets.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from profharness.analysis.load.findings import level_findings
from profharness.rundir.requests_raw import (
    CUT_OFF,
    DONE,
    FAILED,
    INTENDED,
    SENT,
    SERVER,
    STATUS,
    THINK,
    TIMED_OUT,
)
from tests import needs
from tests.load import running
from tests.processes import gone
from tests.variants import thorough

needs.packages("tritonclient", "grpc")
pytestmark = pytest.mark.slow

SERVICE_MS = 20.0


@pytest.fixture(scope="module")
def two_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[running.Served]:
    with running.server(
        tmp_path_factory.mktemp("server"), service_ms=SERVICE_MS, slots=2
    ) as served:
        yield served


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_closed_loop_keeps_its_clients_in_flight(
    tmp_path: Path, two_slots: running.Served, protocol: str
) -> None:
    done = running.level(
        tmp_path, two_slots.ready, concurrency=4, seconds=1.5, spec={"protocol": protocol}
    )
    assert done.result.ok, done.result.error + done.log
    figures = done.figures()
    assert figures.little.holds, figures.little
    assert figures.failed == 0
    assert figures.requests == done.level.requests
    assert figures.service is not None
    # two slots of 20 ms: 100 requests/s at most, and with four clients a latency of two services at
    # least
    assert 50 <= figures.request_rate <= 101
    assert figures.service.mean.value is not None
    assert figures.service.mean.value >= 2 * SERVICE_MS * 0.99e6
    assert figures.request_rate * figures.service.mean.value / 1e9 == pytest.approx(4, rel=0.1)


def test_every_request_carries_its_number_and_the_inputs_differ(tmp_path: Path) -> None:
    with running.server(tmp_path, service_ms=1, slots=4) as served:
        done = running.level(
            tmp_path, served.ready, concurrency=3, batch_size=2, spec={"clients": 2, "distinct": 5}
        )
        assert done.result.ok, done.result.error + done.log
        seen = served.seen()["seen"]
    assert isinstance(seen, list)
    raw = done.raw()
    sent = raw.numbers[raw.rows[:, STATUS] != CUT_OFF]
    assert set(sent.tolist()) <= {one["sequence"] for one in seen}
    assert {number >> 40 for number in raw.numbers.tolist()} == {0, 1}
    assert len({one["first"] for one in seen}) == 5
    assert {tuple(one["shape"]) for one in seen} == {(2, 16)}
    assert done.level.clients == 2


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_open_loop_sends_when_it_is_due_not_when_it_is_free(
    tmp_path: Path, two_slots: running.Served, arrivals: str
) -> None:
    done = running.level(
        tmp_path, two_slots.ready, mode="open", rate=60.0, arrivals=arrivals, seconds=2.0, seed=3
    )
    assert done.result.ok, done.result.error + done.log
    figures = done.figures()
    assert figures.offered == pytest.approx(120, abs=1 if arrivals == "constant" else 45)
    rows = done.raw().rows
    meant = rows[
        (rows[:, INTENDED] >= done.level.window_start_ns)
        & (rows[:, INTENDED] < done.level.window_end_ns)
    ]
    assert (meant[:, SENT] >= meant[:, INTENDED]).all()
    if arrivals == "constant":
        assert set(np.diff(np.sort(meant[:, INTENDED])) // 1000) <= {16666, 16667}
    assert figures.corrected is not None
    assert figures.service is not None
    assert (figures.corrected.mean.value or 0) >= (figures.service.mean.value or 0)


def test_overload_shows_in_the_open_loop(tmp_path: Path, two_slots: running.Served) -> None:
    done = running.level(
        tmp_path, two_slots.ready, mode="open", rate=200.0, arrivals="constant", seconds=1.5
    )
    assert done.result.ok, done.result.error + done.log
    ids = {one.id for one in level_findings(done.figures())}
    assert "rate-not-reached" in ids
    assert done.figures().request_rate < 110


def test_arrivals_of_a_file_begin_with_the_window(
    tmp_path: Path, two_slots: running.Served
) -> None:
    times = tmp_path / "arrivals.txt"
    times.write_text("0.010\n0.020\n0.300\n0.310\n0.620\n")
    done = running.level(tmp_path, two_slots.ready, mode="open", arrivals=str(times), seconds=0.7)
    assert done.result.ok, done.result.error + done.log
    rows = done.raw().rows
    begin = done.level.window_start_ns
    wanted = [int(text) for text in (1e7, 2e7, 3e8, 3.1e8, 6.2e8)]
    assert [at - begin for at in np.sort(rows[:, INTENDED]) if 0 <= at - begin < 7e8] == wanted


def test_think_time_counts_in_littles_law(tmp_path: Path, two_slots: running.Served) -> None:
    done = running.level(tmp_path, two_slots.ready, concurrency=4, think_ms=100, seconds=2.0)
    assert done.result.ok, done.result.error + done.log
    figures = done.figures()
    assert figures.little.holds, figures.little
    assert figures.think_ns == pytest.approx(1e8, rel=0.01)
    rows = done.raw().rows
    assert set(rows[rows[:, STATUS] == 0][:, THINK]) <= {0, 100_000_000}


def test_two_servers_share_the_clients(tmp_path: Path, two_slots: running.Served) -> None:
    with running.server(tmp_path, name="other", service_ms=40, slots=2) as far:
        done = running.level(tmp_path, [two_slots.ready, far.ready], concurrency=4)
    assert done.result.ok, done.result.error + done.log
    rows = done.raw().rows
    near, distant = (
        np.median((rows[:, DONE] - rows[:, SENT])[(rows[:, SERVER] == at) & (rows[:, STATUS] == 0)])
        for at in (0, 1)
    )
    assert distant > 1.5 * near
    assert done.figures().little.holds


@pytest.mark.parametrize(
    ("compression", "protocol"),
    [("gzip", "grpc"), ("deflate", "http"), *thorough(("gzip", "http"), ("deflate", "grpc"))],
)
def test_compressed_requests_are_understood(
    tmp_path: Path, two_slots: running.Served, protocol: str, compression: str
) -> None:
    spec = {"protocol": protocol, "compression": compression, "shapes": {"x": [5000]}}
    done = running.level(tmp_path, two_slots.ready, concurrency=2, seconds=0.5, spec=spec)
    assert done.result.ok, done.result.error + done.log
    assert done.figures().failed == 0


@pytest.mark.parametrize(
    ("sized", "protocol"),
    [(False, "grpc"), (True, "http"), *thorough((False, "http"), (True, "grpc"))],
)
def test_tensors_in_shared_memory(tmp_path: Path, protocol: str, sized: bool) -> None:
    shape = {"output_shape": [16]} if sized else {}
    with running.server(tmp_path, service_ms=2, slots=2, **shape) as served:
        done = running.level(
            tmp_path,
            served.ready,
            concurrency=2,
            seconds=0.5,
            spec={"protocol": protocol, "shared_memory": "system"},
        )
        assert done.result.ok, done.result.error + done.log
        assert done.figures().failed == 0
        assert served.seen()["regions"] == []
        assert done.level.network_bytes is not None
    assert done.lines[0].pid
    assert list(Path("/dev/shm").glob(f"profharness_*_p{done.lines[0].pid}n*")) == []


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_large_messages_pass_the_windows_of_http2(tmp_path: Path, protocol: str) -> None:
    with running.server(tmp_path, service_ms=1, slots=2) as served:
        done = running.level(
            tmp_path,
            served.ready,
            concurrency=2,
            batch_size=8,
            seconds=0.5,
            spec={"protocol": protocol, "shapes": {"x": [60000]}, "distinct": 2},
        )
        assert done.result.ok, done.result.error + done.log
        assert done.figures().failed == 0
    assert done.level.network_bytes is not None
    assert (
        done.level.network_bytes.tx >= (done.level.requests - 2) * 8 * 60000 * 4
    )  # two were on their way when the window opened


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        str(key),
        "-out",
        str(cert),
    ]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("needs openssl to make a certificate")
    return cert, key


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_tls_with_a_certificate_and_a_token(
    tmp_path: Path, certificate: tuple[Path, Path], protocol: str
) -> None:
    cert, key = certificate
    with running.server(
        tmp_path, cert=str(cert), key=str(key), service_ms=2, slots=2, token="secret"
    ) as served:
        done = running.level(
            tmp_path, served.ready, concurrency=2, seconds=0.5, spec={"protocol": protocol}
        )
        assert done.result.ok, done.result.error + done.log
        assert done.figures().failed == 0
        wrong = json.loads(served.ready.read_text())
        wrong["ca"] = ""
        (tmp_path / "wrong.json").write_text(json.dumps(wrong))
        (tmp_path / "again").mkdir()
        refused = running.level(
            tmp_path / "again",
            tmp_path / "wrong.json",
            concurrency=1,
            spec={"protocol": protocol, "timeout_s": 2},
        )
    assert not refused.result.ok
    assert "TLS" in refused.result.error, refused.result.error


def test_a_wrong_token_is_an_error_storm_that_ends_early(tmp_path: Path) -> None:
    with running.server(tmp_path, token="secret") as served:
        description = {**served.description, "token": "guess"}
        (tmp_path / "guess.json").write_text(json.dumps(description))
        began = time.monotonic()
        done = running.level(
            tmp_path, tmp_path / "guess.json", concurrency=4, seconds=60, warmup_s=60
        )
    assert time.monotonic() - began < 60  # of 120
    assert not done.result.ok
    assert "error storm" in done.result.error
    assert "wrong token" in done.result.error


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_errors_are_counted_and_the_level_goes_on(tmp_path: Path, protocol: str) -> None:
    with running.server(tmp_path, service_ms=5, slots=4, fail=0.2) as served:
        done = running.level(
            tmp_path, served.ready, concurrency=4, seconds=1.5, spec={"protocol": protocol}
        )
    assert done.result.ok, done.result.error + done.log
    assert 0.02 < done.figures().failed_share < 0.5
    assert done.level.failed == done.figures().failed
    assert (done.raw().rows[:, STATUS] == FAILED).any()
    assert "asked to fail" in done.result.notes["said"]
    assert "errors" in {one.id for one in level_findings(done.figures())}


def test_requests_without_an_answer_time_out(tmp_path: Path) -> None:
    with running.server(tmp_path, service_ms=2, slots=2, hang_after=60) as served:
        done = running.level(
            tmp_path, served.ready, concurrency=2, seconds=20, warmup_s=0.1, spec={"timeout_s": 0.4}
        )
    assert not done.result.ok
    assert "error storm" in done.result.error
    assert "no answer within 0.4 s" in done.result.error
    timed_out = done.raw().rows[done.raw().rows[:, STATUS] == TIMED_OUT]
    assert len(timed_out) >= 2
    assert ((timed_out[:, DONE] - timed_out[:, SENT]) >= 4e8).all()


def test_cut_connections_do_not_hang_the_level(tmp_path: Path) -> None:
    with running.server(tmp_path, service_ms=2, slots=2, drop_after=100) as served:
        done = running.level(
            tmp_path, served.ready, concurrency=2, seconds=30, spec={"protocol": "http"}
        )
    assert not done.result.ok
    assert "error storm" in done.result.error
    assert "closed the connection" in done.result.error


def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        model = {
            "name": "double",
            "version": "1",
            "max_batch_size": 4,
            "inputs": [{"name": "x", "dtype": "FP32", "shape": [-1]}],
            "outputs": [],
        }
        ready = {
            "v": 1,
            "grpc": f"127.0.0.1:{port}",
            "http": f"127.0.0.1:{port}",
            "models": [model],
        }
        (tmp_path / "ready.json").write_text(json.dumps(ready))
        done = running.level(tmp_path, tmp_path / "ready.json", concurrency=3)
    assert not done.result.ok
    assert "Connection refused" in done.result.error, done.result.error


def test_a_batch_that_the_server_does_not_take_fails_its_point_alone(
    tmp_path: Path, two_slots: running.Served
) -> None:
    done = running.level(tmp_path, two_slots.ready, batch_size=65)
    assert done.status == 0
    assert done.result.error == "batch 65 is larger than the model's max_batch_size 64"


def test_a_server_of_another_kind_gets_the_users_body(tmp_path: Path) -> None:
    (tmp_path / "prompts.jsonl").write_text('{"prompt": "a"}\n{"prompt": "b"}\n')
    with running.server(tmp_path, service_ms=5, slots=2) as served:
        (tmp_path / "plain.json").write_text(json.dumps({**served.description, "models": []}))
        done = running.level(
            tmp_path,
            tmp_path / "plain.json",
            concurrency=2,
            seconds=0.5,
            spec={"protocol": "http", "body": str(tmp_path / "prompts.jsonl"), "path": "/plain"},
        )
    assert done.result.ok, done.result.error + done.log
    assert done.figures().failed == 0
    assert done.level.server_stats is None


def test_statistics_and_cpu_of_the_server_are_those_of_the_window(
    tmp_path: Path, two_slots: running.Served
) -> None:
    done = running.level(tmp_path, two_slots.ready, concurrency=4)
    assert done.level.server_stats is not None
    stats = done.level.server_stats["double"]
    assert stats.success == pytest.approx(done.level.requests, abs=12)
    figures = done.figures()
    assert figures.parts is not None
    assert figures.parts.complete, figures.parts
    assert done.level.server_cpu_ns is not None
    assert 0 < done.level.server_cpu_ns < done.level.window_ns
    assert done.level.cpu_ns is not None
    assert done.level.cpu_ns > 0


def test_a_managed_server_is_asked_to_open_and_close(
    tmp_path: Path, two_slots: running.Served
) -> None:
    environ = running.prepare(
        tmp_path,
        str(two_slots.ready),
        [{"concurrency": 2, "seconds": 0.5, "warmup_s": 0.2}],
        managed=True,
    )
    control = Path(environ["PROFHARNESS_CONTROL_DIR"])
    worker = subprocess.Popen([sys.executable, str(running.CLIENT)], env=environ)
    answers = {"open": "opened", "close": "closed"}
    deadline = time.monotonic() + 120
    heard: list[str] = []
    asked = control / "levels.jsonl"
    while worker.poll() is None and time.monotonic() < deadline:
        lines = asked.read_text().splitlines() if asked.exists() else []
        for line in lines[len(heard) :]:
            heard.append(json.loads(line)["kind"])
            with (control / "windows.jsonl").open("a") as file:
                file.write(
                    json.dumps(
                        {
                            "v": 1,
                            "kind": answers[heard[-1]],
                            "id": "level",
                            "monotonic_ns": time.perf_counter_ns(),
                        }
                    )
                    + "\n"
                )
        time.sleep(0.01)
    assert worker.wait(60) == 0
    assert heard == ["open", "close"]
    done = running.outcome(tmp_path, 0, "")
    assert done.result.ok
    assert "window" not in done.result.notes


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(part) for part in text.split()]


def start_long_level(tmp_path: Path, served: running.Served) -> subprocess.Popen[bytes]:
    environ = running.prepare(
        tmp_path,
        str(served.ready),
        [{"concurrency": 2, "seconds": 200, "warmup_s": 0.1}],
        clients=2,
    )
    worker = subprocess.Popen([sys.executable, str(running.CLIENT)], env=environ)
    deadline = time.monotonic() + 60
    while len(children(worker.pid)) < 2:
        assert worker.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return worker


def test_a_killed_client_process_fails_the_level(tmp_path: Path, two_slots: running.Served) -> None:
    worker = start_long_level(tmp_path, two_slots)
    os.kill(children(worker.pid)[0], signal.SIGKILL)
    assert worker.wait(100) == 0
    error = running.outcome(tmp_path, 0, "").result.error
    assert "a client process ended early (by SIGKILL)" in error


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_no_client_process_outlives_the_worker(
    tmp_path: Path, two_slots: running.Served, how: signal.Signals
) -> None:
    worker = start_long_level(tmp_path, two_slots)
    clients = children(worker.pid)
    worker.send_signal(how)
    worker.wait(100)
    deadline = time.monotonic() + 60
    while not all(map(gone, clients)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert all(map(gone, clients))

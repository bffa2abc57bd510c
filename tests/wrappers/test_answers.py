"""Answers alone and beside others, against a server of ours that changes what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("workloads")
LENGTH = "Inference-Header-Content-Length"


class Served(BaseHTTPRequestHandler):
    """Doubles its input. Once as many requests as `crowd` are open at the same time, it adds the
    server's `error` to what it says.
    """

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        self.answer(json.dumps({"model_stats": self.server.statistics()}).encode(), {})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        length = int(self.headers[LENGTH])
        (tensor,) = json.loads(body[:length])["inputs"]
        x = np.frombuffer(body[length:], "<f4").reshape(tensor["shape"])
        y = 2 * x
        if self.server.crowded():
            y = y + np.float32(self.server.error)
        data = y.astype("<f4").tobytes()
        told = {
            "name": "y",
            "datatype": "FP32",
            "shape": list(y.shape),
            "parameters": {"binary_data_size": len(data)},
        }
        head = json.dumps({"outputs": [told]}).encode()
        self.answer(head + data, {LENGTH: str(len(head))})

    def answer(self, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(self.server.status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Not on the terminal."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    error = 0.0
    status = 200
    alone = 4  # requests that come by themselves, before all come at once
    tells = False  # whether it counts what it answers

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Served)
        self.asked = self.counted = 0
        self.lock = threading.Lock()

    def crowded(self) -> bool:
        with self.lock:
            self.asked += 1
            return self.asked > self.alone

    def statistics(self) -> list[dict[str, Any]]:
        """What it counted until the reading before: Triton too counts a batch behind its answer.
        The requests that come at once met in one batch.
        """
        if not self.tells:
            return []
        told, self.counted = self.counted, self.asked
        single, crowd = min(told, self.alone), told - self.alone
        sizes = {1: single, **({crowd: 1} if crowd > 0 else {})}
        batches = [
            {"batch_size": size, "compute_infer": {"count": count, "ns": 0}}
            for size, count in sizes.items()
        ]
        return [
            {
                "name": "m",
                "inference_count": told,
                "execution_count": sum(sizes.values()),
                "inference_stats": {"success": {"count": told, "ns": 0}},
                "batch_stats": batches,
            }
        ]


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()
    thread.join()


def compared(server: Server, **changed: object) -> dict[str, str]:
    from profharness_workloads.loadgen import answers
    from profharness_workloads.loadgen.messages import Tensor
    from profharness_workloads.loadgen.settings import Server as Described

    described = Described(
        None,
        "",
        "",
        f"127.0.0.1:{server.server_port}",
        "",
        False,
        False,
        "",
        ({"name": "m"},),
        "",
        {},
    )._replace(**changed)
    requests = [
        (Tensor("x", "FP32", np.arange(1, n + 1, dtype=np.float32)[None]),) for n in (3, 5, 7, 9)
    ]
    return answers.compare(described, "m", requests, 10)


def test_equal_answers_are_counted_as_such(server: Server) -> None:
    assert compared(server) == {
        "answers_compared": "4",
        "answers_differ": "0",
        "answers_largest": "0",
        "answers_met": "0",
    }


def test_the_batch_that_they_met_in_is_told_although_it_is_counted_late(server: Server) -> None:
    server.tells = True
    assert compared(server)["answers_met"] == "4"


def test_answers_that_the_crowd_changes_differ(server: Server) -> None:
    server.error = 0.5
    found = compared(server)
    assert (found["answers_compared"], found["answers_differ"]) == ("4", "4")
    assert float(found["answers_largest"]) == pytest.approx(0.5 / 6.5, rel=1e-2)


def test_the_last_digits_may_differ(server: Server) -> None:
    server.error = 1e-5
    assert compared(server)["answers_differ"] == "0"


def test_a_server_that_answers_nothing_is_said(server: Server) -> None:
    server.status = 503
    assert compared(server) == {"answers": "not compared: the server answered 503"}
    assert compared(server, http="") == {"answers": "not compared: the server offers no HTTP"}


@pytest.mark.parametrize(
    ("one", "other", "differs"),
    [
        ([1.0, float("nan")], [1.0, float("nan")], 0.0),
        ([1.0, float("nan")], [1.0, 2.0], float("inf")),
        ([1.0, 2.0], [1.0, 2.0, 3.0], float("inf")),
        ([0.0, 0.0], [0.0, 0.0], 0.0),
        ([10.0, 0.1], [10.0, 0.2], 0.01),
        ([], [], 0.0),
    ],
)
def test_differences_are_relative_to_the_largest_value(
    one: list[float], other: list[float], differs: float
) -> None:
    from profharness_workloads.loadgen.answers import difference

    pair: list[dict[str, Any]] = [{"y": np.array(values)} for values in (one, other)]
    assert difference(*pair) == pytest.approx(differs)
    assert difference({"y": np.zeros(1)}, {"z": np.zeros(1)}) == float("inf")

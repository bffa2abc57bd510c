"""A stand-in for a model server whose service time is known: `stand_in_timed_server.py PORT
[--instances 3] [--service-ms 20]`.

KServe v2 over HTTP (readiness, metadata, configuration, statistics, infer) with one model
`sleeper`: FP32 x[4] -> y[4] = 2 x. Each instance serves one request at a time, for exactly the
service time; requests wait in the order of their arrival. It is one thread over plain sockets, so
that the hand-over costs a small part of a millisecond.

An instance that has work waiting takes it at the instant at which it was to be free, not when this
process got a core again: lateness delays an answer and is never added to the service time, so that
the capacity is instances / service time exactly. GET /late tells how late answers left, in ns.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import heapq
import json
import select
import socket
import time
from collections.abc import Callable

import numpy as np

NAME, WIDTH = "sleeper", 4
NS = 1_000_000_000
PR_SET_TIMERSLACK = 29


class Sleeper:
    """The queue in front of the instances: all times in ns of the monotonic clock."""

    def __init__(self, instances: int, service_ns: int) -> None:
        self.instances, self.service_ns = instances, service_ns
        self.free = [0] * instances
        self.due: list[tuple[int, int, int, Callable[[], None]]] = []
        self.number = self.queue_ns = self.served = self.items = 0
        self.late_ns: list[int] = []

    def arrive(self, now: int, items: int, answer: Callable[[], None]) -> None:
        """First come, first served, by the instance that is free first."""
        start = max(now, heapq.heappop(self.free))
        heapq.heappush(self.free, start + self.service_ns)
        self.items += items
        self.number += 1
        heapq.heappush(self.due, (start + self.service_ns, self.number, start - now, answer))

    def wait_s(self) -> float | None:
        """Until the next answer is due; None where none is."""
        return max(0, self.due[0][0] - time.monotonic_ns()) / NS if self.due else None

    def answer(self) -> None:
        """All that is due."""
        while self.due and self.due[0][0] <= (now := time.monotonic_ns()):
            when, _, waited, answer = heapq.heappop(self.due)
            answer()
            self.served += 1
            self.queue_ns += waited
            self.late_ns.append(now - when)

    def statistics(self) -> object:
        """As Triton counts: what has been answered."""
        n, infer = self.served, self.served * self.service_ns
        zero = {"count": n, "ns": 0}
        parts = {
            "success": {"count": n, "ns": self.queue_ns + infer},
            "queue": {"count": n, "ns": self.queue_ns},
            "compute_input": zero,
            "compute_infer": {"count": n, "ns": infer},
            "compute_output": zero,
        }
        return {
            "model_stats": [
                {
                    "name": NAME,
                    "version": "1",
                    "inference_count": self.items,
                    "execution_count": n,
                    "inference_stats": parts,
                    "batch_stats": [{"batch_size": 1, "compute_infer": {"count": n, "ns": infer}}],
                }
            ]
        }

    def page(self, path: str) -> object:
        """What a GET answers, None where there is no such page."""
        tensor = {"datatype": "FP32", "shape": [-1, WIDTH]}
        pages: dict[str, Callable[[], object]] = {
            "/v2/health/ready": dict,
            "/v2": lambda: {"name": "stand-in", "version": "0", "extensions": []},
            f"/v2/models/{NAME}": lambda: {
                "name": NAME,
                "versions": ["1"],
                "platform": "stand-in",
                "inputs": [{"name": "x", **tensor}],
                "outputs": [{"name": "y", **tensor}],
            },
            f"/v2/models/{NAME}/config": lambda: {
                "name": NAME,
                "backend": "stand-in",
                "max_batch_size": 8,
                "instance_group": [{"count": self.instances}],
            },
            "/v2/models/stats": self.statistics,
            f"/v2/models/{NAME}/stats": self.statistics,
            "/late": lambda: self.late_ns,
        }
        return pages[path]() if path in pages else None


class Connection:
    """One client: a request is read whole, and answered before the next is read."""

    def __init__(self, sock: socket.socket, sleeper: Sleeper) -> None:
        self.sock, self.sleeper, self.data = sock, sleeper, b""

    def readable(self) -> bool:
        """False once the client has gone."""
        try:
            got = self.sock.recv(1 << 16)
        except ConnectionError:
            return False
        self.data += got
        while self.request():
            pass
        return got != b""

    def request(self) -> bool:
        """Take a whole request from what was received, if there is one."""
        head, found, rest = self.data.partition(b"\r\n\r\n")
        if not found:
            return False
        words = head.decode("latin-1").split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in words[1:])
        }
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return False
        self.data = rest[length:]
        method, path, _ = words[0].split(" ")
        if (method, path) == ("POST", f"/v2/models/{NAME}/infer"):
            self.infer(
                rest[:length], int(headers["inference-header-content-length"]), time.monotonic_ns()
            )
        else:
            page = self.sleeper.page(path) if method == "GET" else None
            self.answer(b"404 Not Found" if page is None else b"200 OK", json.dumps(page).encode())
        return True

    def infer(self, body: bytes, length: int, now: int) -> None:
        """A request that is not of the protocol is an error of 400."""
        try:
            (one,) = json.loads(body[:length])["inputs"]
            assert (one["name"], one["datatype"], one["shape"][1:]) == ("x", "FP32", [WIDTH]), one
            assert one["parameters"]["binary_data_size"] == len(body) - length, one
            x = np.frombuffer(body, "<f4", offset=length).reshape(one["shape"])
        except (AssertionError, ValueError, KeyError) as error:
            self.answer(b"400 Bad Request", json.dumps({"error": str(error)}).encode())
            return
        y = (2 * x).tobytes()
        text = json.dumps(
            {
                "model_name": NAME,
                "outputs": [
                    {
                        "name": "y",
                        "datatype": "FP32",
                        "shape": one["shape"],
                        "parameters": {"binary_data_size": len(y)},
                    }
                ],
            }
        ).encode()
        self.sleeper.arrive(
            now,
            len(x),
            lambda: self.answer(
                b"200 OK", text + y, b"Inference-Header-Content-Length: %d\r\n" % len(text)
            ),
        )

    def answer(self, status: bytes, data: bytes, more: bytes = b"") -> None:
        try:
            self.sock.sendall(
                b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, more, len(data), data)
            )
        except OSError:
            pass  # the client did not wait for it


def serve(port: int, sleeper: Sleeper) -> None:
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)  # ns: sleeps end when asked
    gc.disable()
    listener = socket.create_server(("127.0.0.1", port), backlog=1024)
    poller = select.epoll()
    poller.register(listener, select.EPOLLIN)
    connections: dict[int, Connection] = {}
    while True:
        select.select([poller], [], [], sleeper.wait_s())  # epoll would round up to milliseconds
        sleeper.answer()
        for fd, _ in poller.poll(0):
            if fd == listener.fileno():
                sock, _ = listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                connections[sock.fileno()] = Connection(sock, sleeper)
                poller.register(sock, select.EPOLLIN)
            elif not connections[fd].readable():
                poller.unregister(fd)
                connections.pop(fd).sock.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--service-ms", type=float, default=20.0)
    asked = parser.parse_args()
    serve(asked.port, Sleeper(asked.instances, round(asked.service_ms * 1e6)))

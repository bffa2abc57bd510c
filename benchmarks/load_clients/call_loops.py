"""Client libraries that bring their own sockets: grpcio, httpx and http.client.

Each takes the place of the load generator's socket loop (`loop.Loop`) in a client process, and
does the same work: it sends the messages that were serialised beforehand, numbers them, and writes
a row per request. Closed loops only, one process.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from time import perf_counter_ns
from typing import Any

from profharness_workloads.loadgen import board
from profharness_workloads.loadgen.client_plan import Plan
from profharness_workloads.loadgen.request_rows import FAILED, OK, SEQUENCES, RequestRows

Call = Callable[[bytes, bytes, int], str]
"""Sends head, payload, length of the JSON part (-1: none); returns what went wrong or ""."""
AsyncCall = Callable[[bytes, bytes, int], Awaitable[str]]
READY_WITHIN_S = 20.0


class _Calls:
    """What both kinds of loops share: the numbers of requests, their rows, the board."""

    def __init__(self, plan: Plan, common: Any, mine: Any, say: Any):
        if plan.arrivals is not None:
            raise ValueError("the libraries are compared in closed loops only")
        self._plan, self._common, self._mine, self._say = plan, common, mine, say
        self._rows = RequestRows(plan.records)
        self._numbers = itertools.count(plan.first)
        self._lock = threading.Lock()

    def message(self, slot: int) -> Callable[[], tuple[int, int, tuple[bytes, bytes, int]]]:
        """A function that gives number, items and parts of the next request of a slot."""
        messages = self._plan.messages(slot)
        base = self._plan.client * SEQUENCES

        def following() -> tuple[int, int, tuple[bytes, bytes, int]]:
            count = next(self._numbers)
            one = messages[count % len(messages)]
            return base + count, one.items, one.parts(base + count)

        return following

    def note(self, number: int, items: int, sent_ns: int, error: str) -> None:
        """Write down an answer that is here now."""
        done_ns = perf_counter_ns()
        with self._lock:
            status = FAILED if error else OK
            self._rows.add(number, sent_ns, sent_ns, done_ns, items, status, 0, 0)
            if error:
                self._mine[board.FAILED] += 1
                self._say(error)
            else:
                self._mine[board.DONE] += 1
                self._mine[board.LATENCY_NS] += done_ns - sent_ns

    @property
    def stopped(self) -> bool:
        return bool(self._common[board.PHASE] == board.STOP)

    def wait(self) -> bool:
        """Whether load is to be made: returns at the common start, or when it is called off."""
        self._mine[board.READY] = 1
        while not self._common[board.START_NS]:
            if self.stopped:
                return False
            time.sleep(0.001)
        time.sleep(max(0, self._common[board.START_NS] - perf_counter_ns()) / 1e9)
        gc.collect()
        gc.disable()
        return True


class ThreadLoop(_Calls):
    """A thread for each request in flight, each with blocking calls."""

    def __init__(self, calls: Callable[[int], list[Call]], plan: Plan, *board_of_client: Any):
        super().__init__(plan, *board_of_client)
        self._calls = calls(plan.slots)

    def run(self) -> None:
        if not self.wait():
            return
        threads = [
            threading.Thread(target=self._client, args=(slot, call))
            for slot, call in enumerate(self._calls)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._rows.close()

    def _client(self, slot: int, call: Call) -> None:
        following = self.message(slot)
        while not self.stopped:
            number, items, parts = following()
            sent_ns = perf_counter_ns()
            self.note(number, items, sent_ns, call(*parts))


class AsyncioLoop(_Calls):
    """A task for each request in flight, on one asyncio loop."""

    def __init__(
        self,
        calls: Callable[[int], Awaitable[list[AsyncCall]]],
        plan: Plan,
        *board_of_client: Any,
    ):
        super().__init__(plan, *board_of_client)
        self._calls = calls

    def run(self) -> None:
        asyncio.run(self._run())
        self._rows.close()

    async def _run(self) -> None:
        calls = await self._calls(self._plan.slots)
        if self.wait():
            await asyncio.gather(*(self._client(slot, call) for slot, call in enumerate(calls)))

    async def _client(self, slot: int, call: AsyncCall) -> None:
        following = self.message(slot)
        while not self.stopped:
            number, items, parts = following()
            sent_ns = perf_counter_ns()
            self.note(number, items, sent_ns, await call(*parts))


def grpcio(address: str, method: str) -> Callable[[int], list[Call]]:
    """Blocking calls over one channel; bytes go in and out as they are."""

    def calls(slots: int) -> list[Call]:
        import grpc  # not before the fork, which it does not outlive

        channel = grpc.insecure_channel(address, options=[("grpc.max_send_message_length", -1)])
        grpc.channel_ready_future(channel).result(timeout=READY_WITHIN_S)
        infer = channel.unary_unary(method)

        def call(head: bytes, payload: bytes, _length: int) -> str:
            try:
                infer(head + payload)
            except grpc.RpcError as error:
                return str(error)
            return ""

        return [call] * slots

    return calls


def grpcio_asyncio(address: str, method: str) -> Callable[[int], Awaitable[list[AsyncCall]]]:
    """The same with grpcio's asyncio interface."""

    async def calls(slots: int) -> list[AsyncCall]:
        import grpc.aio

        options = [("grpc.max_send_message_length", -1)]
        channel = grpc.aio.insecure_channel(address, options=options)
        await asyncio.wait_for(channel.channel_ready(), READY_WITHIN_S)
        infer = channel.unary_unary(method)

        async def call(head: bytes, payload: bytes, _length: int) -> str:
            try:
                await infer(head + payload)
            except grpc.RpcError as error:
                return str(error)
            return ""

        return [call] * slots

    return calls


def httpx(address: str, path: str, headers: Mapping[str, str]) -> Callable[[int], list[Call]]:
    """A client per thread; requests with headers built once per length."""

    def calls(slots: int) -> list[Call]:
        import httpx

        url = httpx.URL(f"http://{address}{path}")

        def one() -> Call:
            client = httpx.Client(trust_env=False)
            known: dict[tuple[int, int], httpx.Headers] = {}

            def call(head: bytes, payload: bytes, length: int) -> str:
                key = len(head) + len(payload), length
                if key not in known:
                    said = dict(body_headers(*key))
                    known[key] = httpx.Headers({"Host": address, **headers, **said})
                request = httpx.Request("POST", url, headers=known[key], content=head + payload)
                answer = client.send(request)
                return "" if answer.status_code == 200 else f"HTTP status {answer.status_code}"

            return call

        return [one() for _ in range(slots)]

    return calls


def http_client(address: str, path: str, headers: Mapping[str, str]) -> Callable[[int], list[Call]]:
    """The standard library's client, a connection per thread."""

    def one() -> Call:
        connection = http.client.HTTPConnection(address)
        connection.connect()

        def call(head: bytes, payload: bytes, length: int) -> str:
            body = head + payload
            said = {**headers, **dict(body_headers(len(body), length))}
            connection.request("POST", path, body, said)
            answer = connection.getresponse()
            answer.read()
            return "" if answer.status == 200 else f"HTTP status {answer.status}"

        return call

    return lambda slots: [one() for _ in range(slots)]


def body_headers(length: int, json_length: int) -> list[tuple[str, str]]:
    """The headers that tell a body's length and that of its JSON part (-1: not said)."""
    part = [("Inference-Header-Content-Length", str(json_length))] if json_length >= 0 else []
    return [*part, ("Content-Length", str(length))]

"""Whether a server answers each request the same beside others as alone: batches of requests that
differ in length must not change what the model says.

The distinct requests of a level are sent one after the other, then all at once, over HTTP beside
the load's own connections, and the answers are compared value by value.
"""

from __future__ import annotations

import http.client
import json
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.loadgen.messages import Tensor, http_message, numpy_type
from profharness_workloads.loadgen.server_side import counted, growth, statistics
from profharness_workloads.loadgen.settings import HTTP, Server
from profharness_workloads.shared.protocol import Refusal

MOST = 16  # requests that are compared
TOLERANCE = 1e-3
"""Of the largest value of an output: frameworks choose other kernels for other batches, whose sums
differ in the last digits (some 1e-6 of it in 32 bits, some 1e-4 in 16 bits)."""
LENGTH = "Inference-Header-Content-Length"

Answer = Dict[str, Any]


class Comparison(NamedTuple):
    """`differ` of `compared` requests were answered otherwise beside others; `largest` is the
    largest difference, relative to the output's largest value. `met` is the largest batch that they
    met in, 0 where the server does not tell.
    """

    compared: int
    differ: int
    largest: float
    met: int

    def notes(self) -> Dict[str, str]:
        return {
            "answers_compared": str(self.compared),
            "answers_differ": str(self.differ),
            "answers_largest": "%.3g" % self.largest,
            "answers_met": str(self.met),
        }


def compare(
    server: Server, model: str, requests: Sequence[Sequence[Tensor]], timeout_s: float
) -> Dict[str, str]:
    """Notes of the comparison; why there is none where the server does not answer over HTTP."""
    if not server.http:
        return {"answers": "not compared: the server offers no HTTP"}
    chosen = requests[:MOST]
    items = sum(request[0].array.shape[0] for request in chosen)
    try:
        begun = (statistics(server) or {}).get(model, {}).get("count", 0)
        alone = [_asked(server, model, request, timeout_s) for request in chosen]
        before = counted(server, model, begun + items)
        together = _at_once(server, model, chosen, timeout_s)
        grown = growth(before, counted(server, model, begun + 2 * items)) or {}
    except (OSError, http.client.HTTPException, ValueError, KeyError, Refusal) as error:
        return {"answers": "not compared: %s" % (str(error) or type(error).__name__)}
    sizes = grown.get(model, {}).get("batch_sizes", {})
    largest = [difference(one, other) for one, other in zip(alone, together)]
    return Comparison(
        len(chosen),
        sum(not value <= TOLERANCE for value in largest),
        max(largest, default=0.0),
        max(map(int, sizes), default=0),
    ).notes()


def difference(one: Answer, other: Answer) -> float:
    """The largest difference of two answers, relative to the largest value of its output; infinite
    where their outputs or shapes differ, or one has a value where the other has none (NaN).
    """
    if set(one) != set(other):
        return float("inf")
    largest = 0.0
    for name, array in one.items():
        second = other[name]
        if array.shape != second.shape or (np.isnan(array) != np.isnan(second)).any():
            return float("inf")
        first, second = (np.nan_to_num(each.astype(np.float64)) for each in (array, second))
        if first.size:
            scale = max(float(np.abs(first).max()), float(np.abs(second).max())) or 1.0
            largest = max(largest, float(np.abs(first - second).max()) / scale)
    return largest


def _at_once(
    server: Server, model: str, requests: Sequence[Sequence[Tensor]], timeout_s: float
) -> List[Answer]:
    """Every answer, with a thread for each request. Raises what the first failure raised."""
    answers: List[Optional[Answer]] = [None] * len(requests)
    failures: List[Exception] = []
    ready = threading.Barrier(len(requests))

    def ask(at: int) -> None:
        try:
            ready.wait(timeout_s)
            answers[at] = _asked(server, model, requests[at], timeout_s)
        except Exception as error:  # it is raised in the thread that waits
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(at,), daemon=True) for at in range(len(requests))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise ValueError(str(failures[0])) from failures[0]
    return [answer for answer in answers if answer is not None]


def _asked(server: Server, model: str, tensors: Sequence[Tensor], timeout_s: float) -> Answer:
    """The outputs of one request by name. Raises OSError, HTTPException, ValueError or KeyError
    for what is no answer.
    """
    head, payload, length = http_message(tensors, {}, "none").parts(-1)
    host, _, port = server.address(HTTP).rpartition(":")
    context = server.tls_context(HTTP)
    place = (host.strip("[]"), int(port))
    connection = (
        http.client.HTTPConnection(*place, timeout=timeout_s)
        if context is None
        else http.client.HTTPSConnection(*place, timeout=timeout_s, context=context)
    )
    try:
        headers = {LENGTH: str(length), "Connection": "close", **server.token_header(HTTP)}
        connection.request("POST", "/v2/models/%s/infer" % model, head + payload, headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise ValueError("the server answered %d%s" % (answer.status, _said(body)))
        return read_answer(body, int(answer.headers.get(LENGTH) or len(body)))
    finally:
        connection.close()


def _said(body: bytes) -> str:
    """The reason in the JSON of a refusal; "" for any other body."""
    try:
        reason = json.loads(body.decode("utf-8"))["error"]
    except (ValueError, KeyError, TypeError):
        return ""
    return ": %s" % str(reason)[:200]


def read_answer(body: bytes, length: int) -> Answer:
    """The outputs of an answer whose JSON has `length` bytes; values stand in it or behind it."""
    arrays: Answer = {}
    at = length
    for output in json.loads(body[:length].decode("utf-8"))["outputs"]:
        shape: Tuple[int, ...] = tuple(output["shape"])
        dtype = np.dtype(numpy_type(output["datatype"]))
        size = (output.get("parameters") or {}).get("binary_data_size")
        if size is None:
            array = np.array(output["data"], dtype)
        else:
            array = np.frombuffer(body[at : at + size], dtype.newbyteorder("<"))
            at += size
        arrays[str(output["name"])] = array.reshape(shape)
    return arrays

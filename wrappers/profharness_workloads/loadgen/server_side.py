"""What the server tells about itself over a window: its model statistics and its CPU time. Asked
outside the load's connections.

KServe's statistics extension over HTTP:
https://github.com/triton-inference-server/server/blob/main/docs/protocol/extension_statistics.md
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from typing import Any, Dict, List, Mapping, Optional, Tuple

from profharness_workloads.loadgen.crew import process_cpu_ns
from profharness_workloads.loadgen.settings import HTTP, Server

LIMIT_S = 5.0
BEHIND_S = 2.0  # as long as a server may take to count what it has answered
_PARTS = ("queue", "compute_input", "compute_infer", "compute_output")

Stats = Dict[str, Dict[str, Any]]


def ask(server: Server, method: str, path: str, body: Optional[bytes] = None) -> Tuple[int, bytes]:
    """(status, body) of one HTTP request to the server's own address. Raises OSError or
    http.client.HTTPException.
    """
    host, _, port = server.address(HTTP).rpartition(":")
    context = server.tls_context(HTTP)
    if context is None:
        connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=LIMIT_S)
    else:
        connection = http.client.HTTPSConnection(
            host.strip("[]"), int(port), timeout=LIMIT_S, context=context
        )
    try:
        connection.request(
            method, path, body=body, headers={**server.token_header(HTTP), "Connection": "close"}
        )
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def statistics(server: Server) -> Optional[Stats]:
    """Counts of all models since the server's start, or None where it does not tell."""
    if not server.http or not server.models:
        return None
    try:
        status, body = ask(server, "GET", "/v2/models/stats")
        if status != 200:
            return None
        return {
            str(model["name"]): _counts(model)
            for model in json.loads(body.decode("utf-8"))["model_stats"]
        }
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None  # a remote server may offer no such page: its figures are then "not measured"


def counted(server: Server, model: str, items: int) -> Optional[Stats]:
    """`statistics` once they count at least that many items of the model: Triton answers a request
    first and counts its batch behind that. The last ones read where it takes too long, and the
    first where the server tells nothing of the model.
    """
    deadline = time.monotonic() + BEHIND_S
    while True:
        told = statistics(server)
        known = (told or {}).get(model)
        if known is None or known["count"] >= items or time.monotonic() > deadline:
            return told
        time.sleep(0.01)


def _counts(raw: Mapping[str, Any]) -> Dict[str, Any]:
    stats = raw.get("inference_stats") or {}
    counts: Dict[str, Any] = {
        "%s_ns" % part: int((stats.get(part) or {}).get("ns") or 0) for part in _PARTS
    }
    counts["success"] = int((stats.get("success") or {}).get("count") or 0)
    counts["count"] = int(raw.get("inference_count") or 0)
    counts["exec_count"] = int(raw.get("execution_count") or 0)
    counts["batch_sizes"] = {
        str(batch["batch_size"]): int((batch.get("compute_infer") or {}).get("count") or 0)
        for batch in raw.get("batch_stats") or ()
    }
    return counts


def growth(before: Optional[Stats], after: Optional[Stats]) -> Optional[Stats]:
    """What was added between two statistics, of the models that did anything."""
    if before is None or after is None:
        return None
    grown: Stats = {}
    for model, now in after.items():
        then = before.get(model, {})
        row = {
            name: value - then.get(name, 0) for name, value in now.items() if name != "batch_sizes"
        }
        sizes = then.get("batch_sizes", {})
        row["batch_sizes"] = {
            n: k - sizes.get(n, 0) for n, k in now["batch_sizes"].items() if k > sizes.get(n, 0)
        }
        if row["success"] or row["exec_count"]:
            grown[model] = row
    return grown


def added(parts: List[Optional[Stats]]) -> Optional[Stats]:
    """Growth of several servers, model by model; None when none of them tells."""
    reported = [part for part in parts if part is not None]
    if not reported:
        return None
    total: Stats = {}
    for part in reported:
        for model, row in part.items():
            sums = total.setdefault(model, {"batch_sizes": {}})
            for name, value in row.items():
                if name != "batch_sizes":
                    sums[name] = sums.get(name, 0) + value
            for size, count in row["batch_sizes"].items():
                sums["batch_sizes"][size] = sums["batch_sizes"].get(size, 0) + count
    return total


class ServerCpu:
    """CPU time of the server's process and its descendants, where they run on this host."""

    def __init__(self, server: Server):
        near = server.pid is not None and server.host in ("", socket.gethostname())
        self._pid = server.pid if near and os.path.exists("/proc/%s/stat" % server.pid) else None

    def read_ns(self) -> Optional[int]:
        """CPU time of the server's process and its descendants in ns, or None if out of sight."""
        if self._pid is None:
            return None
        return sum(process_cpu_ns(pid) for pid in _family(self._pid))


def _family(root: int) -> List[int]:
    children: Dict[int, List[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, encoding="ascii", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, IndexError, ValueError):
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(name))
    pids, left = [], [root]
    while left:
        pid = left.pop()
        pids.append(pid)
        left += children.get(pid, ())
    return pids

"""A stand-in for a load generator: it computes the requests that a server of known curve would
answer, and sends none.

STAND_IN, a JSON object, says what that server is: `service_ms` per request, `instances`,
`storm_from` (concurrency from which most requests fail), `noise` (relative, of single requests),
`kill_harness_at` (a key: ends the process that started the run there), `slow_s` (real seconds that
each level takes). Of several models at once those on one device share its instances.
"""

import json
import os
import pathlib
import random
import signal
import socket
import struct
import sys
import time

control = pathlib.Path(os.environ["PROFHARNESS_CONTROL_DIR"])
run = pathlib.Path(os.environ["PROFHARNESS_RUN_DIR"])
spec = json.loads(pathlib.Path(os.environ["PROFHARNESS_SPEC"]).read_text())
does = json.loads(os.environ.get("STAND_IN", "{}"))
harness = int(os.environ["PROFHARNESS_PARENT_PID"])
for n in range(1000):
    try:
        handle = os.open(
            control / f"results-0-{n}.jsonl", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_APPEND
        )
        break
    except FileExistsError:
        continue


def write(**line):
    os.write(handle, (json.dumps({"v": 1, **line}) + "\n").encode())


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def points():
    at = 0
    while True:
        lines = (control / "points.jsonl").read_text().splitlines()
        for line in lines[at:]:
            record = json.loads(line)
            if record["kind"] == "end":
                return
            yield record["id"], record["params"]
        at = len(lines)
        if not alive(harness):
            sys.exit(0)
        time.sleep(0.002)


def window(key, kind):
    with (control / "levels.jsonl").open("a") as file:
        file.write(json.dumps({"v": 1, "kind": kind, "id": key}) + "\n")
    wanted = {"open": "opened", "close": "closed"}[kind]
    deadline = time.monotonic() + 5
    while spec["managed"] and time.monotonic() < deadline:
        path = control / "windows.jsonl"
        if path.exists() and any(
            json.loads(line)["kind"] == wanted and json.loads(line)["id"] == key
            for line in path.read_text().splitlines()
        ):
            return
        time.sleep(0.002)


def requests(params, start, end):
    """Rows of one level: `instances` servers in turn, each busy for the service time; times
    in ns.
    """
    service, servers = does.get("service_ms", 20) * 1e6, does.get("instances", 4)
    rng = random.Random(f"{params}")
    noise = does.get("noise", 0.0)
    free = [start] * servers
    storm = params["mode"] == "closed" and params["concurrency"] >= does.get("storm_from", 1 << 30)
    rows = []
    if params["mode"] == "closed":
        think = params["think_ms"] * 1e6
        ready = [start + think * rng.random() for _ in range(params["concurrency"])]
        while True:
            client = min(range(len(ready)), key=ready.__getitem__)
            sent = ready[client]
            if sent >= end:
                return rows
            done = serve(free, sent, service * (1 + noise * rng.uniform(-1, 1)))
            rows.append(
                (
                    len(rows),
                    int(sent),
                    int(sent),
                    int(done),
                    params["batch_size"],
                    int(storm and rng.random() < 0.8),
                    int(think),
                    0,
                )
            )
            ready[client] = done + think
    at = start
    while True:
        at += rng.expovariate(params["rate"]) * 1e9
        if at >= end:
            return rows
        rows.append(
            (
                len(rows),
                int(at),
                int(at),
                int(serve(free, at, service)),
                params["batch_size"],
                0,
                0,
                0,
            )
        )


def together(params, start, end, devices):
    """Rows of each model: a closed loop for each, on the instances of its device."""
    service = does.get("service_ms", 20) * 1e6
    free = {device: [start] * does.get("instances", 4) for device in devices}
    ready = [[start, model] for _ in range(params["concurrency"]) for model in range(len(devices))]
    rows = [[] for _ in devices]
    while True:
        first = min(ready)
        sent, model = first
        if sent >= end:
            return rows
        first[0] = done = serve(free[devices[model]], sent, service)
        rows[model].append(
            (len(rows[model]), int(sent), int(sent), int(done), params["batch_size"], 0, 0, 0)
        )


def serve(free, sent, service):
    server = min(range(len(free)), key=free.__getitem__)
    free[server] = max(free[server], sent) + service
    return free[server]


assert all(pathlib.Path(path).exists() for path in spec["ready"]), "the server is not ready"
write(
    kind="hello", pid=os.getpid(), host=socket.gethostname(), argv=sys.argv, versions={}, devices=[]
)
for key, params in points():
    write(kind="begin", id=key, monotonic_ns=time.monotonic_ns())
    window(key, "open")
    time.sleep(does.get("slow_s", 0))
    if key == does.get("kill_harness_at"):
        os.kill(harness, signal.SIGKILL)
        sys.exit(0)
    if not alive(harness):
        sys.exit(0)
    end = time.monotonic_ns()
    start = end - int(params["seconds"] * 1e9)
    warm = start - int(2e9)
    labels = [label for _, label in spec["models"]]
    devices = [
        one["device"] for one in json.loads(pathlib.Path(spec["ready"][0]).read_text())["models"]
    ]
    parts = together(params, warm, end, devices) if labels else [requests(params, warm, end)]
    folder = run / "points" / os.environ["PROFHARNESS_PASS"] / key
    folder.mkdir(parents=True, exist_ok=True)
    for client, rows in enumerate(parts):
        (folder / f"requests-{client}.i64").write_bytes(
            b"".join(struct.pack("<8q", *row) for row in rows)
        )
    ended = [row for rows in parts for row in rows if start < row[3] <= end]
    level = {
        "mode": params["mode"],
        "concurrency": params["concurrency"] and params["concurrency"] * len(parts),
        "rate": params["rate"],
        "window_start_ns": start,
        "window_end_ns": end,
        "models": labels,
        "requests": len(ended),
        "failed": sum(row[5] > 0 for row in ended),
        "clients": len(parts),
        "cpu_ns": 10_000_000,
        "late_sends": 0,
        "steady": True,
        "warmup_ns": int(2e9),
        "server_stats": None,
        "server_cpu_ns": 50_000_000,
        "network_bytes": {"rx": 1000 * len(ended), "tx": 2000 * len(ended)},
    }
    window(key, "close")
    write(
        kind="result",
        id=key,
        ok=True,
        error="",
        end_monotonic_ns=time.monotonic_ns(),
        device="cpu",
        level=level,
    )
write(kind="bye")

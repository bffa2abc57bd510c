"""Small Kineto files made by hand, event by event."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

HOST = 100
MAIN = 100


def event(
    category: str, name: str, ts: Any, dur: Any, *, pid: Any = HOST, tid: Any = MAIN, **args: Any
) -> dict[str, Any]:
    """A complete event; underscores in names of arguments stand for blanks."""
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": pid,
        "tid": tid,
        "ts": ts,
        "dur": dur,
        "args": {key.replace("_", " "): value for key, value in args.items()},
    }


def kernel(
    name: str, ts: Any, dur: Any, *, device: Any = 0, stream: Any = 7, **args: Any
) -> dict[str, Any]:
    return event(
        "kernel", name, ts, dur, pid=device, tid=stream, device=device, stream=stream, **args
    )


def launch(
    name: str, ts: Any, dur: Any, correlation: int, *, tid: Any = MAIN, **args: Any
) -> dict[str, Any]:
    return event("cuda_runtime", name, ts, dur, tid=tid, correlation=correlation, **args)


def op(
    name: str, ts: Any, dur: Any, external: int, *, tid: Any = MAIN, **args: Any
) -> dict[str, Any]:
    return event("cpu_op", name, ts, dur, tid=tid, External_id=external, **args)


def document(events: list[Any], **keys: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, **keys, "traceEvents": events}


def write(path: Path, content: Any, *, indent: int | None = None) -> Path:
    """Write JSON, text or bytes; a name that ends in .gz is compressed."""
    data = (
        content
        if isinstance(content, bytes)
        else (content if isinstance(content, str) else json.dumps(content, indent=indent)).encode()
    )
    path.write_bytes(gzip.compress(data) if path.name.endswith(".gz") else data)
    return path


def one_file(folder: Path, name: str, host: str, events: int = 1, **keys: object) -> Path:
    """A file of so many launches with their kernels, which states its host where there is one."""
    pairs = [
        event
        for i in range(events)
        for event in (
            launch("hipLaunchKernel", 10 * i, 1, i + 1),
            kernel("k", 10 * i + 5, 2, correlation=i + 1),
        )
    ]
    return write(
        folder / name,
        document(
            pairs, baseTimeNanoseconds=10**18, **({"host_name": host} if host else {}), **keys
        ),
    )

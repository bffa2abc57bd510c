"""The sidecar of a recorded file: `<file>.profharness.json` tells a reader what the profiler's own
file cannot (rank, clock, window, threads, self-check markers). Also counts the events of a recorded
file.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping


THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "OPENBLAS_NUM_THREADS",
)
_LONGEST = 200


def rank_of(environ: Mapping[str, str]) -> int | None:
    """The global rank as the launchers name it, or None (the same order as everywhere in
    profharness).
    """
    for name in ("PROFHARNESS_RANK", "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
        if environ.get(name, "").isdigit():
            return int(environ[name])
    return None


def sidecar(path: str, tool: str, **fields: Any) -> None:
    """Write the sidecar of `path`; `fields` replace the defaults. Raises OSError.

    The file appears as a whole or not at all. Times in it are nanoseconds.
    """
    record: dict[str, Any] = {
        "v": 1,
        "file": os.path.basename(path),
        "tool": tool,
        "host": os.uname().nodename,
        "pid": os.getpid(),
        "rank": rank_of(os.environ),
        "point": "",
        "clock": "realtime",
        "start_ns": None,
        "role": "trace",
        "window": {
            "kind": "all",
            "first_step": None,
            "steps": None,
            "truncated": False,
            "reason": "",
        },
        "markers": [],
    }
    if tool == "torch":
        record["threads"] = threads()
    record.update(fields)
    target = path + ".profharness.json"
    with open(target + ".part", "w", encoding="ascii") as file:
        json.dump(record, file)
    os.replace(target + ".part", target)


def threads() -> dict[str, Any] | None:
    """With how many threads torch computes when this thread calls it, and the variables of its
    libraries of threads that are set: what a replay of the same operators needs. For example
    `{"intra_op": 4, "variables": {"OMP_NUM_THREADS": "4"}}`; None where torch is not loaded.
    """
    torch = sys.modules.get("torch")
    try:
        count = int(torch.get_num_threads())  # type: ignore[union-attr]
    except Exception:  # a stand-in, or a torch that is being loaded
        return None
    texts = ((name, os.environ.get(name, "")) for name in THREAD_VARIABLES)
    return {
        "intra_op": count,
        "variables": {name: text for name, text in texts if text and len(text) <= _LONGEST},
    }


def count_events(path: str, key: str = "ph", value: str = "X") -> int:
    """Events of an exported Chrome trace whose `key` has this value (complete events, by default),
    counted by their text in pieces of 4 MiB.

    Guessing them from the file's size would be off by a factor of three.
    """
    wide, close = (('"%s":%s"%s"' % (key, gap, value)).encode("ascii") for gap in (" ", ""))
    count, tail = 0, b""
    with open(path, "rb") as file:
        while True:
            block = file.read(1 << 22)
            if not block:
                return count
            text = tail + block
            count += text.count(wide) + text.count(close)
            tail = text[-len(close) :]  # the longer pattern may go on in the next piece
            if tail == close:
                tail = b""  # counted already

"""Reads Kineto files by one library, each in a forked child with bounds: `python reading.py READER
FILES...` prints a line of JSON per file. It runs in the library's own environment and imports
nothing of the harness unless that is the reader.

`busy_us` is the time in which the device did anything, the one figure that all of them give.
"""

from __future__ import annotations

import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

SECONDS, MEMORY = 5, 500 << 20
_ADDRESSES, _WAITED = 4 << 30, 60

Figures = dict[str, float]


def profharness() -> Callable[[Path], Figures]:
    from profharness.analysis.summarise import summarise_trace
    from profharness.understand import load as loading

    def read(path: Path) -> Figures:
        counts = summarise_trace(loading.load([path]).trace, str(path)).trace
        return {"busy_us": (counts.busy_any_ns or 0) / 1e3, "span_us": (counts.span_ns or 0) / 1e3}

    return read


def tracelens() -> Callable[[Path], Figures]:
    from TraceLens import TreePerfAnalyzer

    def read(path: Path) -> Figures:
        table = TreePerfAnalyzer.from_file(str(path)).get_df_gpu_timeline()
        rows = dict(zip(table["type"], table["time ms"], strict=True))
        return {"busy_us": rows["busy_time"] * 1e3, "span_us": rows["total_time"] * 1e3}

    return read


def hta() -> Callable[[Path], Figures]:
    from hta.trace_analysis import TraceAnalysis

    def read(path: Path) -> Figures:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copyfile(path, Path(folder) / path.name)
            found = TraceAnalysis(trace_files={0: str(Path(folder) / path.name)}, trace_dir=folder)
            row = found.get_temporal_breakdown(visualize=False).iloc[0]
        return {
            "busy_us": float(row["kernel_time(us)"] - row["idle_time(us)"]),
            "span_us": float(row["kernel_time(us)"]),
        }

    return read


def script() -> Callable[[Path], Figures]:
    """What a short script would do: json and pandas, spans joined where they overlap."""
    import gzip

    import pandas as pd

    def read(path: Path) -> Figures:
        with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
            content = json.load(file)
        table = pd.DataFrame(content["traceEvents"])
        work = table[table["cat"].isin(("kernel", "gpu_memcpy", "gpu_memset"))].sort_values("ts")
        busy, until = 0.0, float("-inf")
        for start, length in zip(work["ts"], work["dur"], strict=True):
            busy += max(0.0, start + length - max(start, until))
            until = max(until, start + length)
        ends = work["ts"] + work["dur"]
        return {"busy_us": busy, "span_us": float(ends.max() - work["ts"].min())}

    return read


READERS = {"profharness": profharness, "TraceLens": tracelens, "HTA": hta, "script": script}


def one(read: Callable[[Path], Figures], path: Path) -> dict[str, Any]:
    """What came of one file: figures, or the error and its text; seconds of processor, memory."""
    before = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(ours)
        os.write(theirs, json.dumps(_child(read, path)).encode()[:4000])
        os._exit(0)
    os.close(theirs)
    descriptor = os.pidfd_open(pid)
    ended = bool(select.select([descriptor], [], [], _WAITED)[0])
    if not ended:
        os.kill(pid, signal.SIGKILL)
    _, status, used = os.wait4(pid, 0)
    os.close(descriptor)
    with os.fdopen(ours, "rb") as pipe:
        said = pipe.read()
    came = (
        json.loads(said)
        if said and not status
        else {"error": f"ended with {status}", "clean": False}
    )
    return {
        **came,
        "seconds": used.ru_utime + used.ru_stime + (0 if ended else _WAITED),
        "memory": max(0, used.ru_maxrss * 1024 - before),
    }


def _child(read: Callable[[Path], Figures], path: Path) -> dict[str, Any]:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (pages + _ADDRESSES, pages + _ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (30, 31))
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nothing, number)
    try:
        return {"figures": read(path)}
    except BaseException as error:  # noqa: BLE001  whatever a library raises is its answer
        text = str(getattr(error, "message", "") or error)
        kind = type(error).__name__
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        return {"error": f"{kind}: {text[:300]}", "clean": path.name in text, "place": place}


def main() -> None:
    read = READERS[sys.argv[1]]()
    for name in sys.argv[2:]:
        print(json.dumps({"file": name, **one(read, Path(name))}), flush=True)


if __name__ == "__main__":
    main()

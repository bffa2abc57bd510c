"""Chrome traces of other programs, which have Kineto's outer form and none of its events: named for
what they are, and refused.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.unions import Record

_KEYS = ("schemaVersion", "deviceProperties", "baseTimeNanoseconds", "distributedInfo", "traceName")
# what Kineto writes too, and no reading makes rows of
_CATEGORIES = frozenset(
    {
        *("ac2g", "async_cpu_to_gpu", "async_gpu", "fwdbwd", "gpu_user_annotation", "overhead"),
        *("Trace", "collective_comm", "cuda_sync", "cuda_event_record", "glow_runtime"),
        *("hardware_counters", "external_correlation", "cuda_event", "xpu_sync", "hpu_op"),
        *("xpu_scope_profiler", "mtia_ccp_events", "mtia_insight", "mtia_counters"),
    }
)
_SHOWN = 4
_BY_KEY = {"viztracer_metadata": "VizTracer", "beginningOfTime": "clang (-ftime-trace)"}
_BY_PROCESS = {"/device:": "TensorFlow or JAX", "/host:": "TensorFlow or JAX"}


def refuse_foreign(path: Path, rows: KinetoRows, stream: EventStream[Record]) -> None:
    """Raises InputError where a whole file has events and none is of a kind that Kineto writes."""
    keys = stream.keys
    kinds = [kind for kind, _ in rows.left_out.most_common()]
    if (
        stream.damage
        or rows.is_known
        or not kinds
        or any(key in keys for key in _KEYS)
        or not _CATEGORIES.isdisjoint(kinds)
    ):
        return
    program = _program(rows, keys)
    events = rows.left_out.total()
    named = dict.fromkeys("no category" if "=" in kind else kind for kind in kinds)
    shown = ", ".join(list(named)[:_SHOWN]) + (", ..." if len(named) > _SHOWN else "")
    raise InputError(
        f"{path} is a Chrome trace of {program or 'another program'}: none of its {events} events "
        f"is of a kind that torch.profiler writes (it has {shown})",
        "name a trace of torch.profiler, or record the program by "
        "`profharness run --profile rocprofv3 -- COMMAND`",
    )


def _program(rows: KinetoRows, keys: Collection[str]) -> str:
    """Which program wrote the file, where its keys or the names of its processes tell."""
    by_key = (program for key, program in _BY_KEY.items() if key in keys)
    by_process = (
        program
        for prefix, program in _BY_PROCESS.items()
        if any(name.startswith(prefix) for _, _, name in rows.named.recorded)
    )
    return next(by_key, "") or next(by_process, "")

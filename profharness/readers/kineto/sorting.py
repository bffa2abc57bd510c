"""Which of Kineto's categories go into which table, and the columns of each.

Categories are those that libkineto and the 2021 profiler wrote (capitalised then).
"""

from __future__ import annotations

from collections.abc import Callable

from profharness.readers.kineto.records import Event

KERNEL, COPY, CALL, OP, MARK = (
    "kernel",
    "gpu_memcpy",
    "cuda_runtime",
    "cpu_op",
    "user_annotation",
)
FRAME = "python_function"
"""Python's functions and modules, which only readings that ask for them need: not counted among
what is not analysed.
"""
MEMORY, ALLOCATED = "cpu_instant_event", "[memory]"  # the category, and the name in it
FILLS = frozenset({"gpu_memset", "Memset"})
# Categories that share a table go together, so that its rows keep the order of the file.
SAME_TABLE: dict[str | None, str] = {
    "Kernel": KERNEL,
    "Memcpy": COPY,
    **dict.fromkeys(FILLS, COPY),
    "Operator": OP,
    **dict.fromkeys(
        (
            *("cuda_driver", "Runtime", "xpu_runtime", "xpu_driver", "mtia_runtime"),
            *("privateuse1_runtime", "privateuse1_driver"),
        ),
        CALL,
    ),
}
MARK_NAMES = ("ProfilerStep#", "profharness.", "enumerate(DataLoader)#")
"""Beginnings of names of ranges, which the profiler of 2021 writes as operators."""
_TIMES = ("start", "dur", "name")
_OF_KERNELS = ("grid", "block", "registers", "shared", "graph", "collective")
_OF_OPS = ("shapes", "types", "concrete", "strides", "sequence", "forward_tid", "collective")
_ENDS = ("from_device", "to_device")
KERNELS = (*_TIMES, "device", "stream", "correlation", "external", *_OF_KERNELS)
COPIES = (*_TIMES, "device", "stream", "correlation", "external", "bytes", *_ENDS, "fill")
CALLS = (*_TIMES, "pid", "tid", "correlation", "grid", "block", "shared", "bytes", "kernel")
OPS = (*_TIMES, "pid", "tid", "external", *_OF_OPS)
MARKS = (*_TIMES, "pid", "tid", "spoken")
FRAMES = (*_TIMES, "pid", "tid")
_OF_MEMORY = ("device_type", "device_id", "allocated", "reserved")
ALLOCATIONS = ("at", "pid", "tid", "address", "bytes", *_OF_MEMORY)


class Appending(dict[str | None, Callable[[Event], None]]):
    """What puts an event into the list of its category: looked up once per event, which is most of
    what sorting them costs.
    """

    def __init__(self, lists: dict[str | None, list[Event]]) -> None:
        super().__init__({category: events.append for category, events in lists.items()})
        self.update({other: lists[category].append for other, category in SAME_TABLE.items()})
        self._lists = lists

    def __missing__(self, category: str | None) -> Callable[[Event], None]:
        events = self._lists[category] = []
        self[category] = events.append
        return events.append

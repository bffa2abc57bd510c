"""Slices of a Perfetto trace: begins joined with their ends, and what kind of record each one is.

Kinds follow from the categories that rocprofv3, rocprof-sys and our own writer use, for
rocprof-sys's activity of HIP streams from the annotations too, since kernels and copies share that
category.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.proto_scan import I64
from profharness.readers.perfetto.events import BEGIN, END, INSTANT
from profharness.readers.perfetto.notes import Events
from profharness.readers.perfetto.stacks import StackEvents, replay
from profharness.readers.perfetto.tracks import Tracks
from profharness.trace.columns.build import per_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import Strings
from profharness.trace.wanted import Wanted

KERNEL, COPY, CALL, MARK, OP, OTHER = range(6)
OWN_FRAMES = ("module", "python_function")  # categories of Python's frames in files of our own
DOMAINS = {
    "hip_api": "hip",
    "hsa_api": "hsa",
    "rccl_api": "rccl",
    "rocdecode_api": "rocdecode",
    "rocjpeg_api": "rocjpeg",
    "cuda_runtime": "cuda",
    "cuda_driver": "cuda_driver",
    "hip": "hip",
    "hsa": "hsa",
    "cuda": "cuda",
    "rccl": "rccl",
    "runtime": "runtime",
    "kfd": "kfd",
    "scratch": "scratch",
    "graph": "graph",
    "rocdecode": "rocdecode",
    "rocjpeg": "rocjpeg",
}
OWN_MARKS = ("point", "warmup", "trial", "step", "phase", "request", "range", "marker")
_KINDS = {
    "kernel_dispatch": KERNEL,
    "kernel": KERNEL,
    "gpu_kernel": KERNEL,
    "memory_copy": COPY,
    "gpu_memcpy": COPY,
    "gpu_memset": COPY,
    "marker_api": MARK,
    "user_annotation": MARK,
    **dict.fromkeys(OWN_MARKS, MARK),
    **dict.fromkeys(
        (
            "op",
            "cpu_op",
            "host",
            "user",
            "python",
            "mpi",
            "ompt",
            "ompt_api",
            "kokkos",
            "pthread",
            "causal",
        ),
        OP,
    ),
    **dict.fromkeys(DOMAINS, CALL),
}
_STREAM_ACTIVITY = "hip_stream"
_ROCPROF_SYS = re.compile(r"rocm_|(?:host|user|python|timer_sampling|process_sampling|pthread)\Z")
_COPY_NAME = re.compile(
    r"MEMORY_COPY|Copy\w+To|[Mm]em(?:cpy|set)|FillBuffer|(?:h2d|d2h|d2d|p2p|h2h|fill)\Z"
)
_NO_WORK = re.compile(r"SCRATCH_|MEMORY_ALLOC")


@dataclass(frozen=True, eq=False)
class Slices:
    """Slices and instants: the row of the begin event among the events, start and length in ns,
    track and kind.
    """

    event: I64
    start: I64
    dur: I64
    track: I64
    kind: I64
    unclosed: int
    unopened: int
    crossing: int
    left_out: Counter[str]


def category_text(text: str) -> str:
    """The category without the prefix that rocprof-sys puts before those of the ROCm runtime."""
    return text.removeprefix("rocm_")


def from_rocprof_sys(strings: Strings, categories: I64) -> bool:
    """Whether any category is one that only rocprof-sys (Omnitrace) writes."""
    return any(
        _ROCPROF_SYS.match(strings[int(code)]) for code in np.unique(categories) if code != NULL
    )


def read_slices(
    events: Events,
    times: I64,
    state: npt.NDArray[np.int32],
    track: I64,
    named: tuple[Strings, Tracks],
    wanted: Wanted = Wanted.ALL,
) -> Slices:
    """All slices, Python's frames where they are `wanted`. `times` are per event, `state` too;
    `track` is that of the event or of its sequence.
    """
    strings, _ = named
    stacked = np.flatnonzero((events.type == BEGIN) | (events.type == END)).astype(np.int32)
    pairs = replay(
        StackEvents(
            distinct(track[stacked])[1],
            times[stacked],
            events.packet[stacked],
            events.type[stacked],
            events.name[stacked] + 1,
            state[stacked],
        )
    )
    begin, end = stacked[pairs.begins], stacked[pairs.ends]
    instants = np.flatnonzero(events.type == INSTANT)
    event = np.concatenate((begin, instants))
    start, dur = _exact(
        events,
        strings,
        event,
        times[event],
        np.concatenate((times[end] - times[begin], np.zeros(len(instants), np.int64))),
    )
    kind = _kinds(events, event, track[event], named)
    is_frame = np.isin(events.category[event], [strings.find(text) for text in OWN_FRAMES])
    is_frame &= events.category[event] != NULL
    if wanted.frames:
        kind[is_frame] = MARK
    kind[len(begin) :][kind[len(begin) :] != MARK] = OTHER  # only a mark may be an instant
    order = np.argsort(event, kind="stable")
    event, start, dur, kind = event[order], start[order], dur[order], kind[order]
    left_out = (kind == OTHER) & ~is_frame[order]
    kept = kind != OTHER
    return Slices(
        event[kept],
        start[kept],
        dur[kept],
        track[event[kept]],
        kind[kept],
        len(pairs.unclosed),
        len(pairs.unopened),
        len(pairs.crossing),
        _by_category(strings, events.category[event[left_out]]),
    )


def _by_category(strings: Strings, categories: I64) -> Counter[str]:
    """How many there are of each category."""
    counted = zip(*np.unique(categories, return_counts=True), strict=True)
    return Counter(
        {strings[int(code)] or "without category": int(count) for code, count in counted}
    )


def _exact(events: Events, strings: Strings, event: I64, start: I64, dur: I64) -> tuple[I64, I64]:
    """Times from the annotations where a tool writes them: slices of one track that overlap close
    each other's begins.
    """
    begin, end = (
        events.notes.integers([code], len(events))[event]
        if (code := strings.find(label)) != NULL
        else np.full(len(event), NULL, np.int64)
        for label in ("begin_ns", "end_ns")
    )
    exact = (begin == start) & (end >= begin)
    return start, np.where(exact, end - begin, dur)


def _kinds(events: Events, event: I64, track: I64, named: tuple[Strings, Tracks]) -> I64:
    strings, tracks = named
    category = events.category[event]
    kind = per_text(strings, category, lambda text: _KINDS.get(category_text(text), OTHER))
    activity = (
        per_text(strings, category, lambda text: category_text(text) == _STREAM_ACTIVITY) == 1
    )
    bare = category == NULL
    if bare.any():
        # our own writer's slices of device work have no category
        own_tracks = np.array(
            [
                uuid
                for uuid in np.unique(track[bare]).tolist()
                if tracks[uuid].name.startswith("GPU ")
            ],
            np.int64,
        )
        activity |= bare & np.isin(track, own_tracks)
    if activity.any():
        kind[activity] = _device_work(events, event, strings)[activity]
    return kind


def _device_work(events: Events, event: I64, strings: Strings) -> I64:
    """Kernel or copy: by the annotations that only a copy has, else by the name."""
    codes = [code for label in ("copy_bytes", "bytes") if (code := strings.find(label)) != NULL]
    sized = (
        events.notes.integers(codes, len(events))[event] != NULL
        if codes
        else np.zeros(len(event), np.bool_)
    )
    by_name = per_text(strings, events.name[event], _by_name)
    return np.where(sized, COPY, by_name)


def _by_name(name: str) -> int:
    return OTHER if _NO_WORK.match(name) else COPY if _COPY_NAME.match(name) else KERNEL


def per_track(track: I64, value: Callable[[int], int]) -> I64:
    """`value` of each row's track, asked once per track."""
    used, row = distinct(track)
    values = np.array([value(uuid) for uuid in used.tolist()], np.int64)
    return values[row] if len(used) else np.zeros(0, np.int64)


def distinct(numbers: I64) -> tuple[I64, npt.NDArray[np.int32]]:
    """The distinct numbers in rising order, and of each row which it is; without a sort where they
    lie close together, as most writers' do.
    """
    if not len(numbers):
        return numbers, np.zeros(0, np.int32)
    low, high = int(numbers.min()), int(numbers.max())
    if high - low > len(numbers):
        used, place = np.unique(numbers, return_inverse=True)
        return used, place.astype(np.int32)
    present = np.zeros(high - low + 1, np.bool_)
    present[numbers - low] = True
    return np.flatnonzero(present) + low, (np.cumsum(present, dtype=np.int32) - np.int32(1))[
        numbers - low
    ]

"""The plan and the answers of a replay, as JSON between the harness and
`wrappers/profharness_workloads/replay/replay_torch.py`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

ThreadsBy = Literal["", "asked", "trace", "run"]
"""What the number of CPU threads follows: the user's word, the trace, what the run set, or nothing
but torch's own choice.
"""


class TensorGiven(msgspec.Struct, frozen=True, tag="tensor", tag_field="kind"):
    """A tensor: extents, element type by torch's name (empty: not known), strides in elements
    where they are recorded.
    """

    dims: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None


class TensorsGiven(msgspec.Struct, frozen=True, tag="tensors", tag_field="kind"):
    """A list of tensors, by extents and, where they are recorded, strides. Element types of lists
    are in no trace.
    """

    members: tuple[tuple[int, ...], ...]
    strides: tuple[tuple[int, ...], ...] | None = None


class ValueGiven(msgspec.Struct, frozen=True, tag="value", tag_field="kind"):
    """A number, truth value or (`listed`) list of them, each as Python writes it; nothing for None
    and for texts. `lost`: there was a value, and it is not recorded.
    """

    texts: tuple[str, ...] = ()
    listed: bool = False
    lost: bool = False


Given = TensorGiven | TensorsGiven | ValueGiven


class CallTask(msgspec.Struct, frozen=True):
    """One call to replay; `list_type` is the element type for tensors in lists."""

    id: int
    name: str
    inputs: tuple[Given, ...]
    list_type: str = "float32"


class ProfilerOptions(msgspec.Struct, frozen=True):
    """With which options torch's profiler recorded the trace."""

    record_shapes: bool = True
    with_stack: bool = False
    profile_memory: bool = False


class ReplayPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What one process has to do. `threads` 0 leaves their number to torch, `memory_limit` 0 is
    half of what is free; `limit_s` bounds each call with its repetitions. With `count` each call is
    made so many times for a tool that counts around the process, and not timed.
    """

    device: str
    threads: int
    seed: int
    min_seconds: float
    memory_limit: int
    limit_s: float
    results: str
    profiler: ProfilerOptions
    calls: tuple[CallTask, ...]
    count: int = 0


class Warm(msgspec.Struct, frozen=True):
    """Warm calls: ns of one call, by batches of `calls`; how many calls warmed up, and whether
    they became steady. `waited` is the share of the whole time that the process waited for a core;
    it is taken off all times.
    """

    ns: tuple[float, ...] = ()
    calls: int = 1
    warm_up: int = 0
    steady: bool = True
    waited: float = 0.0


class PassedTensor(msgspec.Struct, frozen=True):
    """A tensor as it was made: its numbers lie between `low` and `high`, the end left out."""

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    low: float = 0.5
    high: float = 1.0
    rising: bool = False


class Passed(msgspec.Struct, frozen=True):
    """An argument as it was passed; `value` is a literal of Python where it is no tensor."""

    name: str
    keyword: bool = False
    tensors: tuple[PassedTensor, ...] = ()
    listed: bool = False
    value: str = ""


class ReplayLine(msgspec.Struct, frozen=True):
    """One line of the answers; which fields are set depends on `kind`. `windows` are when the calls
    ran that were counted: starts and ends in CLOCK_BOOTTIME ns, the device idle at both.
    """

    kind: Literal["hello", "begin", "result", "refused", "bye"]
    id: int = -1
    error: str = ""
    overload: str = ""
    chosen: tuple[str, ...] = ()
    slots: tuple[Passed, ...] = ()
    warm: Warm = Warm()
    profiled: tuple[float, ...] = ()
    cold: tuple[float, ...] = ()
    windows: tuple[tuple[int, int], ...] = ()
    torch: str = ""
    device: str = ""
    device_name: str = ""
    threads: int = 0
    memory_limit: int = 0

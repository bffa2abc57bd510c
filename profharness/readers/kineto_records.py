"""Kineto's events as they are decoded: one type that takes any event, and one per usual category.

An event of a usual category is decoded once, arguments included, and is sorted by its type; what is not needed of it is
never made. A block with anything else (older files, metadata, arguments of unexpected form) is decoded as `Event`
throughout, whose times and arguments stay text until its category is known. Both say the same of the same event.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from profharness.trace.model import NULL

Number = int | float | str | None

NOTHING = msgspec.Raw(b"")
_NO_ARGS = msgspec.Raw(b"{}")


class Event(msgspec.Struct, gc=False):
    """What all events have. Times and arguments stay text until the event's category is known to be needed."""

    ph: str = ""
    cat: str | None = None
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL
    args: msgspec.Raw = _NO_ARGS


class CommsArgs(msgspec.Struct, gc=False):
    """What torch says of a collective (`record_param_comms`), on the operator and in newer files on the kernel."""

    collective: Number = msgspec.field(default=None, name="Collective name")
    in_elements: Number = msgspec.field(default=None, name="In msg nelems")
    out_elements: Number = msgspec.field(default=None, name="Out msg nelems")
    comms_dtype: Number = msgspec.field(default=None, name="dtype")
    group_size: Number = msgspec.field(default=None, name="Group size")
    group_name: Number = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Number = msgspec.field(default=None, name="Process Group Ranks")


class KernelArgs(CommsArgs, gc=False):
    """Arguments of a kernel. `block` and `grid` are lists of three numbers."""

    device: Number = None
    stream: Number = None
    correlation: Number = NULL
    external: Number = msgspec.field(default=NULL, name="External id")
    external_2021: Number = msgspec.field(default=NULL, name="external id")
    kind: Number = None
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    registers: Number = msgspec.field(default=NULL, name="registers per thread")
    shared: Number = msgspec.field(default=NULL, name="shared memory")


class CopyArgs(msgspec.Struct, gc=False):
    """Arguments of a copy or fill; the devices of a copy between two are stated by newer files only."""

    device: Number = None
    stream: Number = None
    correlation: Number = NULL
    bytes: Number = NULL
    from_device: Number = msgspec.field(default=None, name="fromDevice")
    to_device: Number = msgspec.field(default=None, name="toDevice")


class CallArgs(msgspec.Struct, gc=False):
    """Arguments of a host call. ROCm states the geometry of a launch and the size of a copy (as text) here."""

    correlation: Number = NULL
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING
    shared: Number = msgspec.field(default=NULL, name="shared memory")
    bytes: Number = NULL
    size: Number = NULL


class OpArgs(CommsArgs, gc=False):
    """Arguments of an operator; shapes and types stay the JSON text that was recorded."""

    external: Number = msgspec.field(default=NULL, name="External id")
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


class RangeArgs(msgspec.Struct, gc=False):
    """Arguments of a range that is a collective on the CPU."""

    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


class NoArgs(msgspec.Struct, gc=False):
    """Arguments that are not needed."""


class _Usual(msgspec.Struct, tag_field="cat", gc=False):
    """A span of a usual category. `ph` that is no span makes the block an unusual one."""

    ph: Literal["X"]
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL


class Kernel(_Usual, tag="kernel", gc=False):
    """A kernel of a device."""

    cat: ClassVar[str] = "kernel"
    args: KernelArgs = msgspec.field(default_factory=KernelArgs)


class Copy(_Usual, tag="gpu_memcpy", gc=False):
    """A copy."""

    cat: ClassVar[str] = "gpu_memcpy"
    args: CopyArgs = msgspec.field(default_factory=CopyArgs)


class Fill(_Usual, tag="gpu_memset", gc=False):
    """A fill."""

    cat: ClassVar[str] = "gpu_memset"
    args: CopyArgs = msgspec.field(default_factory=CopyArgs)


class Call(_Usual, tag="cuda_runtime", gc=False):
    """A call of the host's runtime."""

    cat: ClassVar[str] = "cuda_runtime"
    args: CallArgs = msgspec.field(default_factory=CallArgs)


class DriverCall(_Usual, tag="cuda_driver", gc=False):
    """A call of the driver."""

    cat: ClassVar[str] = "cuda_driver"
    args: CallArgs = msgspec.field(default_factory=CallArgs)


class Operator(_Usual, tag="cpu_op", gc=False):
    """An operator; its arguments are decoded where operators are wanted."""

    cat: ClassVar[str] = "cpu_op"
    args: msgspec.Raw = _NO_ARGS


class OperatorName(msgspec.Struct, tag_field="cat", tag="cpu_op", gc=False):
    """What is left of an operator where none is wanted: its name tells the ranges that older files keep among them."""

    cat: ClassVar[str] = "cpu_op"
    ph: Literal["X"]
    name: str | None = ""


class Mark(_Usual, tag="user_annotation", gc=False):
    """A range that the program named."""

    cat: ClassVar[str] = "user_annotation"
    args: msgspec.Raw = _NO_ARGS


class Arrow(msgspec.Struct, tag_field="cat", tag="ac2g", gc=False):
    """From a launch to its kernel: not needed, since both say their correlation."""

    cat: ClassVar[str] = "ac2g"


class Backward(msgspec.Struct, tag_field="cat", tag="fwdbwd", gc=False):
    """From an operator to its backward one: not needed."""

    cat: ClassVar[str] = "fwdbwd"


class Frame(msgspec.Struct, tag_field="cat", tag="python_function", gc=False):
    """A Python function: not needed."""

    cat: ClassVar[str] = "python_function"


class DeviceMark(msgspec.Struct, tag_field="cat", tag="gpu_user_annotation", gc=False):
    """A range as it spans kernels on a device: not needed."""

    cat: ClassVar[str] = "gpu_user_annotation"


USUAL_SPANS = (Kernel, Copy, Fill, Call, DriverCall, Operator, Mark)
Unneeded = Arrow | Backward | Frame | DeviceMark
Usual = Kernel | Copy | Fill | Call | DriverCall | Operator | Mark | Unneeded
WithoutOps = Kernel | Copy | Fill | Call | DriverCall | OperatorName | Mark | Unneeded
Span = Event | Kernel | Copy | Fill | Call | DriverCall | Operator | Mark
Record = Span | OperatorName | Unneeded

"""Kineto's events as they are decoded: one type that takes any event, and one per usual category.

An event of a usual category is decoded once, arguments included, and is sorted by its type; what is
not needed of it is never made. A block with anything else (older files, metadata, arguments of
unexpected form) is decoded as `Event` throughout, whose times and arguments stay text until its
category is known. Both say the same of the same event.

Where not everything is wanted, narrower types of the usual categories keep less: of the host what
launches say of kernels, or nothing.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from profharness.trace.columns.table import NULL

Number = int | float | str | None

Triple = tuple[int, int, int] | None

NOTHING = msgspec.Raw(b"")
_NO_ARGS = msgspec.Raw(b"{}")


class Event(msgspec.Struct, gc=False):
    """What all events have. Times and arguments stay text until the event's category is known to be
    needed.
    """

    ph: str = ""
    cat: str | None = None
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    dur: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL
    args: msgspec.Raw = _NO_ARGS


class CommsArgs(msgspec.Struct, gc=False):
    """What torch says of a collective (`record_param_comms`), on the operator and in newer files on
    the kernel.
    """

    collective: Number = msgspec.field(default=None, name="Collective name")
    in_elements: Number = msgspec.field(default=None, name="In msg nelems")
    out_elements: Number = msgspec.field(default=None, name="Out msg nelems")
    in_splits: Number = msgspec.field(default=None, name="In split size")
    out_splits: Number = msgspec.field(default=None, name="Out split size")
    comms_dtype: Number = msgspec.field(default=None, name="dtype")
    group_size: Number = msgspec.field(default=None, name="Group size")
    group_name: Number = msgspec.field(default=None, name="Process Group Name")
    group_ranks: Number = msgspec.field(default=None, name="Process Group Ranks")


class StatedArgs(CommsArgs, gc=False):
    """All arguments of a kernel but its geometry; `kind` is ROCm's."""

    device: Number = None
    stream: Number = None
    correlation: Number = NULL
    kind: Number = None
    external: Number = msgspec.field(default=NULL, name="External id")
    external_2021: Number = msgspec.field(default=NULL, name="external id")
    registers: Number = msgspec.field(default=NULL, name="registers per thread")
    shared: Number = msgspec.field(default=NULL, name="shared memory")
    graph: Number = msgspec.field(default=NULL, name="graph id")  # 0: the host launched it


class KernelArgs(StatedArgs, gc=False):
    """Arguments of a kernel whose `block` and `grid` are any JSON."""

    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING


class UsualKernelArgs(StatedArgs, gc=False):
    """Arguments of a kernel whose `block` and `grid` are lists of three numbers: quicker than text
    to be decoded and compared.
    """

    grid: Triple = None
    block: Triple = None


class DeviceArgs(msgspec.Struct, gc=False):
    """The argument of a kernel that tells on which device it ran."""

    device: Number = None


class PlacedArgs(DeviceArgs, gc=False):
    """Arguments of a kernel that tell where it ran."""

    stream: Number = None
    correlation: Number = NULL
    kind: Number = None


class DeviceKernelArgs(PlacedArgs, gc=False):
    """Arguments of a kernel with any geometry."""

    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING


class UsualDeviceKernelArgs(PlacedArgs, gc=False):
    """The same with the usual geometry."""

    grid: Triple = None
    block: Triple = None


class CopyArgs(msgspec.Struct, gc=False):
    """Arguments of a copy or fill; the devices of a copy between two are stated by newer files
    only.
    """

    device: Number = None
    stream: Number = None
    correlation: Number = NULL
    external: Number = msgspec.field(default=NULL, name="External id")
    bytes: Number = NULL
    from_device: Number = msgspec.field(default=None, name="fromDevice")
    to_device: Number = msgspec.field(default=None, name="toDevice")


class AskedArgs(msgspec.Struct, gc=False):
    """Arguments of a host call but the geometry of a launch. ROCm states the size of a copy here,
    as text.
    """

    correlation: Number = NULL
    shared: Number = msgspec.field(default=NULL, name="shared memory")
    bytes: Number = NULL
    size: Number = NULL


class CallArgs(AskedArgs, gc=False):
    """Arguments of a host call whose `block` and `grid`, which ROCm states here, are any JSON."""

    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING


class UsualCallArgs(AskedArgs, gc=False):
    """Arguments of a host call that launches with lists of three numbers, or launches nothing."""

    grid: Triple = None
    block: Triple = None


class NamingArgs(CallArgs, gc=False):
    """Arguments of a host call with the name of the kernel that it launches, which ROCm states."""

    kernel: Number = None


class UsualNamingArgs(UsualCallArgs, gc=False):
    """The same with the usual geometry."""

    kernel: Number = None


class LaunchArgs(msgspec.Struct, gc=False):
    """What a host call says of the kernel that it launches, with any geometry."""

    correlation: Number = NULL
    grid: msgspec.Raw = NOTHING
    block: msgspec.Raw = NOTHING


class UsualLaunchArgs(msgspec.Struct, gc=False):
    """The same with the usual geometry."""

    correlation: Number = NULL
    grid: Triple = None
    block: Triple = None


class OpArgs(CommsArgs, gc=False):
    """Arguments of an operator; what says of its inputs stays the JSON text that was recorded."""

    external: Number = msgspec.field(default=NULL, name="External id")
    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    dims_2021: msgspec.Raw = msgspec.field(default=NOTHING, name="Input dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")
    concrete: msgspec.Raw = msgspec.field(default=NOTHING, name="Concrete Inputs")
    strides: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Strides")
    sequence: Number = msgspec.field(default=NULL, name="Sequence number")
    forward_tid: Number = msgspec.field(default=NULL, name="Fwd thread id")


class MemoryArgs(msgspec.Struct, gc=False):
    """Arguments of an allocation or release: where and how much, and the bytes that the process
    holds after it.
    """

    address: Number = msgspec.field(default=NULL, name="Addr")
    bytes: Number = msgspec.field(default=0, name="Bytes")  # a release of one byte says -1
    device_type: Number = msgspec.field(default=NULL, name="Device Type")
    device_id: Number = msgspec.field(default=NULL, name="Device Id")
    allocated: Number = msgspec.field(default=NULL, name="Total Allocated")
    reserved: Number = msgspec.field(default=NULL, name="Total Reserved")


class RangeArgs(msgspec.Struct, gc=False):
    """Arguments of a range that is a collective on the CPU."""

    dims: msgspec.Raw = msgspec.field(default=NOTHING, name="Input Dims")
    types: msgspec.Raw = msgspec.field(default=NOTHING, name="Input type")


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
    args: UsualKernelArgs = msgspec.field(default_factory=UsualKernelArgs)


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
    args: UsualCallArgs = msgspec.field(default_factory=UsualCallArgs)


class DriverCall(_Usual, tag="cuda_driver", gc=False):
    """A call of the driver."""

    cat: ClassVar[str] = "cuda_driver"
    args: UsualCallArgs = msgspec.field(default_factory=UsualCallArgs)


class NamingCall(_Usual, tag="cuda_runtime", gc=False):
    """A call of the runtime, with the kernel that it names."""

    cat: ClassVar[str] = "cuda_runtime"
    args: UsualNamingArgs = msgspec.field(default_factory=UsualNamingArgs)


class NamingDriverCall(_Usual, tag="cuda_driver", gc=False):
    """A call of the driver, with the kernel that it names."""

    cat: ClassVar[str] = "cuda_driver"
    args: UsualNamingArgs = msgspec.field(default_factory=UsualNamingArgs)


class Operator(_Usual, tag="cpu_op", gc=False):
    """An operator."""

    cat: ClassVar[str] = "cpu_op"
    args: OpArgs = msgspec.field(default_factory=OpArgs)


class Mark(_Usual, tag="user_annotation", gc=False):
    """A range that the program named."""

    cat: ClassVar[str] = "user_annotation"
    args: msgspec.Raw = _NO_ARGS


class Allocation(msgspec.Struct, tag_field="cat", tag="cpu_instant_event", gc=False):
    """An instant of torch's allocator."""

    cat: ClassVar[str] = "cpu_instant_event"
    ph: Literal["i"]
    name: str | None = ""
    ts: msgspec.Raw = NOTHING
    pid: Number = NULL
    tid: Number = NULL
    args: MemoryArgs = msgspec.field(default_factory=MemoryArgs)


class Arrow(msgspec.Struct, tag_field="cat", tag="ac2g", gc=False):
    """From a launch to its kernel: not needed, since both say their correlation."""

    cat: ClassVar[str] = "ac2g"


class Backward(msgspec.Struct, tag_field="cat", tag="fwdbwd", gc=False):
    """From an operator to its backward one: not needed."""

    cat: ClassVar[str] = "fwdbwd"


class Frame(msgspec.Struct, tag_field="cat", tag="python_function", gc=False):
    """A Python function: not needed."""

    cat: ClassVar[str] = "python_function"


class StackFrame(_Usual, tag="python_function", gc=False):
    """A Python function, or the call of a module, where stacks are wanted."""

    cat: ClassVar[str] = "python_function"
    args: msgspec.Raw = _NO_ARGS


class DeviceMark(msgspec.Struct, tag_field="cat", tag="gpu_user_annotation", gc=False):
    """A range as it spans kernels on a device: not needed."""

    cat: ClassVar[str] = "gpu_user_annotation"


class TimedKernel(_Usual, tag="kernel", gc=False):
    """A kernel where only times matter."""

    cat: ClassVar[str] = "kernel"
    args: DeviceArgs = msgspec.field(default_factory=DeviceArgs)


class DeviceKernel(_Usual, tag="kernel", gc=False):
    """A kernel where only the devices matter."""

    cat: ClassVar[str] = "kernel"
    args: UsualDeviceKernelArgs = msgspec.field(default_factory=UsualDeviceKernelArgs)


class _Launch(msgspec.Struct, tag_field="cat", gc=False):
    """A host call where only the devices matter: when it ran and in which thread is left out."""

    ph: Literal["X"]
    name: str | None = ""
    args: UsualLaunchArgs = msgspec.field(default_factory=UsualLaunchArgs)


class Launch(_Launch, tag="cuda_runtime", gc=False):
    """What is left of a call of the runtime."""

    cat: ClassVar[str] = "cuda_runtime"


class DriverLaunch(_Launch, tag="cuda_driver", gc=False):
    """What is left of a call of the driver."""

    cat: ClassVar[str] = "cuda_driver"

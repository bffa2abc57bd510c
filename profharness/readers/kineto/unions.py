"""Which records each way of reading a Kineto file keeps, and which it looks at no further: msgspec
decodes an event into the type of these unions whose category it has.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from profharness.readers.kineto.records import (
    Allocation,
    Arrow,
    Backward,
    Call,
    Copy,
    DeviceKernel,
    DeviceMark,
    DriverCall,
    DriverLaunch,
    Event,
    Fill,
    Frame,
    Kernel,
    Launch,
    Mark,
    NamingCall,
    NamingDriverCall,
    Operator,
    StackFrame,
    TimedKernel,
)


class SkippedCall(msgspec.Struct, tag_field="cat", tag="cuda_runtime", gc=False):
    """A call of the runtime where only times matter."""

    cat: ClassVar[str] = "cuda_runtime"


class SkippedDriverCall(msgspec.Struct, tag_field="cat", tag="cuda_driver", gc=False):
    """A call of the driver where only times matter."""

    cat: ClassVar[str] = "cuda_driver"


class SkippedOperator(msgspec.Struct, tag_field="cat", tag="cpu_op", gc=False):
    """An operator where only the devices matter."""

    cat: ClassVar[str] = "cpu_op"


class SkippedMark(msgspec.Struct, tag_field="cat", tag="user_annotation", gc=False):
    """A range of the program where only the devices matter."""

    cat: ClassVar[str] = "user_annotation"


class SkippedAllocation(msgspec.Struct, tag_field="cat", tag="cpu_instant_event", gc=False):
    """An instant of torch's allocator where only the devices matter."""

    cat: ClassVar[str] = "cpu_instant_event"


Unneeded = Arrow | Backward | Frame | DeviceMark
Kept = Kernel | Copy | Fill | Operator | Mark | Allocation
Usual = Kept | Call | DriverCall | Unneeded
UsualOfLaunched = Kept | NamingCall | NamingDriverCall | Unneeded
UsualWithFrames = Kept | Call | DriverCall | StackFrame | Arrow | Backward | DeviceMark
UsualOfDevices = (
    DeviceKernel
    | Copy
    | Fill
    | Launch
    | DriverLaunch
    | SkippedOperator
    | SkippedMark
    | SkippedAllocation
    | Unneeded
)
UsualOfTimes = (
    TimedKernel
    | Copy
    | Fill
    | SkippedCall
    | SkippedDriverCall
    | SkippedOperator
    | SkippedMark
    | SkippedAllocation
    | Unneeded
)
Timed = (
    Event
    | Kernel
    | Copy
    | Fill
    | Call
    | DriverCall
    | NamingCall
    | NamingDriverCall
    | Operator
    | Mark
    | StackFrame
    | DeviceKernel
    | TimedKernel
)
Span = Timed | Launch | DriverLaunch
Skipped = SkippedCall | SkippedDriverCall | SkippedOperator | SkippedMark | SkippedAllocation
Record = Span | Allocation | Skipped | Unneeded

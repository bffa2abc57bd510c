"""The records of rocprofv3's JSON file, as far as they are used (rocprofiler-sdk's tool library
writes them).

Fields that not every version writes have a default.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from profharness.readers.bytes.limits import Extent, Nanoseconds, Whole
from profharness.trace.columns.table import NULL

Unsigned = Annotated[int, msgspec.Meta(ge=-(2**63))]
"""64 bits; those above int64 stand for "none" (`json_columns.numbers`)."""

Position = Annotated[int, msgspec.Meta(ge=-1, le=2**20 - 1)]
"""In the file's tables of names; two are packed into one number (`json_memory.OPERATIONS`)."""


class Handle(msgspec.Struct, frozen=True):
    """An agent, queue, stream or counter."""

    handle: Unsigned = NULL


class Correlation(msgspec.Struct, frozen=True):
    """`internal` is shared by a host call and the device records that it made."""

    internal: Whole = 0


class Triple(msgspec.Struct):
    """Work-items along three axes."""

    x: Extent
    y: Extent
    z: Extent


class DispatchInfo(msgspec.Struct):
    """What was launched, where. The grid is in work-items; LDS (group segment) is static and
    dynamic together.
    """

    agent_id: Handle
    queue_id: Handle
    kernel_id: Whole
    dispatch_id: Whole
    workgroup_size: Triple
    grid_size: Triple
    private_segment_size: Whole = NULL
    group_segment_size: Whole = NULL


class Dispatch(msgspec.Struct):
    """A kernel that ran."""

    start_timestamp: Nanoseconds
    end_timestamp: Nanoseconds
    dispatch_info: DispatchInfo
    thread_id: Whole = NULL
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class CounterValue(msgspec.Struct):
    """One instance (die, shader engine, channel ...) of one counter."""

    counter_id: Handle
    value: float


class CountedDispatch(msgspec.Struct):
    """The dispatch that counters were read for."""

    dispatch_info: DispatchInfo
    start_timestamp: Nanoseconds = NULL
    end_timestamp: Nanoseconds = NULL
    correlation_id: Correlation = Correlation()


class CounterRecord(msgspec.Struct):
    """All counter values of one dispatch."""

    dispatch_data: CountedDispatch
    records: list[CounterValue] = []
    thread_id: Whole = NULL
    stream_id: Handle = Handle()


class Call(msgspec.Struct):
    """A host call or marker; kind and operation are positions in the file's tables of names."""

    kind: Position
    operation: Position
    start_timestamp: Nanoseconds
    end_timestamp: Nanoseconds
    thread_id: Whole = NULL
    correlation_id: Correlation = Correlation()


class Copy(msgspec.Struct):
    """A copy between two agents."""

    kind: Position
    operation: Position
    start_timestamp: Nanoseconds
    end_timestamp: Nanoseconds
    src_agent_id: Handle
    dst_agent_id: Handle
    bytes: Whole = NULL
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class Memory(msgspec.Struct):
    """An allocation, a release (whose agent is none), or what was done about scratch memory."""

    kind: Position
    operation: Position
    start_timestamp: Nanoseconds
    end_timestamp: Nanoseconds
    thread_id: Whole = NULL
    agent_id: Handle = Handle()
    address: int | str | Handle = NULL
    allocation_size: Unsigned = NULL


class Symbol(msgspec.Struct):
    """A kernel of a loaded code object; its group segment is the static LDS."""

    kernel_id: Whole
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    group_segment_size: Whole = NULL
    sgpr_count: Whole = NULL
    arch_vgpr_count: Whole = NULL
    accum_vgpr_count: Whole = NULL


class Node(msgspec.Struct, frozen=True):
    """The machine."""

    hostname: str = ""


class Metadata(msgspec.Struct):
    """The process."""

    node: Node = Node()
    pid: Whole = NULL
    command: msgspec.Raw = msgspec.Raw(b"[]")


class AgentRecord(msgspec.Struct):
    """A processor: type 1 is a CPU, 2 a GPU."""

    id: Handle = Handle()
    type: Whole = 0
    cu_count: Whole = 0
    num_xcc: Whole = 0
    vendor_id: Whole = 0
    device_id: Whole = 0
    location_id: Whole = 0
    domain: Whole = 0
    max_engine_clk_fcompute: Whole = 0
    name: str = ""
    vendor_name: str = ""
    product_name: str = ""
    node_id: Whole = NULL
    logical_node_id: Whole = NULL
    logical_node_type_id: Whole = NULL


class CounterName(msgspec.Struct):
    """A hardware counter or a metric derived from several."""

    id: Handle
    name: str = ""


class KindNames(msgspec.Struct):
    """A kind of record and the names of its operations."""

    kind: str = ""
    operations: list[str] = []


class MarkerText(msgspec.Struct, gc=False):
    """The text of a marker by its correlation id."""

    key: Whole
    value: str


class Names(msgspec.Struct):
    """The file's tables of names."""

    buffer_records: list[KindNames] = []
    marker_api: list[MarkerText] = []

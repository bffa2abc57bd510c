"""The records of rocprofv3's JSON file, as far as they are used (rocprofiler-sdk's tool library
writes them).

Fields that not every version writes have a default.
"""

from __future__ import annotations

import msgspec

from profharness.trace.columns.table import NULL


class Handle(msgspec.Struct, frozen=True):
    """An agent, queue, stream or counter."""

    handle: int = NULL


class Correlation(msgspec.Struct, frozen=True):
    """`internal` is shared by a host call and the device records that it made."""

    internal: int = 0


class Triple(msgspec.Struct):
    """Work-items along three axes."""

    x: int
    y: int
    z: int


class DispatchInfo(msgspec.Struct):
    """What was launched, where. The grid is in work-items; LDS (group segment) is static and
    dynamic together.
    """

    agent_id: Handle
    queue_id: Handle
    kernel_id: int
    dispatch_id: int
    workgroup_size: Triple
    grid_size: Triple
    private_segment_size: int = NULL
    group_segment_size: int = NULL


class Dispatch(msgspec.Struct):
    """A kernel that ran."""

    start_timestamp: int
    end_timestamp: int
    dispatch_info: DispatchInfo
    thread_id: int = NULL
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class CounterValue(msgspec.Struct):
    """One instance (die, shader engine, channel ...) of one counter."""

    counter_id: Handle
    value: float


class CountedDispatch(msgspec.Struct):
    """The dispatch that counters were read for."""

    dispatch_info: DispatchInfo
    start_timestamp: int = NULL
    end_timestamp: int = NULL
    correlation_id: Correlation = Correlation()


class CounterRecord(msgspec.Struct):
    """All counter values of one dispatch."""

    dispatch_data: CountedDispatch
    records: list[CounterValue] = []
    thread_id: int = NULL
    stream_id: Handle = Handle()


class Call(msgspec.Struct):
    """A host call or marker; kind and operation are positions in the file's tables of names."""

    kind: int
    operation: int
    start_timestamp: int
    end_timestamp: int
    thread_id: int = NULL
    correlation_id: Correlation = Correlation()


class Copy(msgspec.Struct):
    """A copy between two agents."""

    kind: int
    operation: int
    start_timestamp: int
    end_timestamp: int
    src_agent_id: Handle
    dst_agent_id: Handle
    bytes: int = NULL
    correlation_id: Correlation = Correlation()
    stream_id: Handle = Handle()


class Memory(msgspec.Struct):
    """An allocation, a release (whose agent is none), or what was done about scratch memory."""

    kind: int
    operation: int
    start_timestamp: int
    end_timestamp: int
    thread_id: int = NULL
    agent_id: Handle = Handle()
    address: int | str | Handle = NULL
    allocation_size: int = NULL


class Symbol(msgspec.Struct):
    """A kernel of a loaded code object; its group segment is the static LDS."""

    kernel_id: int
    kernel_name: str = ""
    formatted_kernel_name: str = ""
    group_segment_size: int = NULL
    sgpr_count: int = NULL
    arch_vgpr_count: int = NULL
    accum_vgpr_count: int = NULL


class Node(msgspec.Struct, frozen=True):
    """The machine."""

    hostname: str = ""


class Metadata(msgspec.Struct):
    """The process."""

    node: Node = Node()
    pid: int = NULL


class AgentRecord(msgspec.Struct):
    """A processor: type 1 is a CPU, 2 a GPU."""

    id: Handle = Handle()
    type: int = 0
    cu_count: int = 0
    num_xcc: int = 0
    vendor_id: int = 0
    device_id: int = 0
    location_id: int = 0
    domain: int = 0
    max_engine_clk_fcompute: int = 0
    name: str = ""
    vendor_name: str = ""
    product_name: str = ""
    node_id: int = NULL
    logical_node_id: int = NULL
    logical_node_type_id: int = NULL


class CounterName(msgspec.Struct):
    """A hardware counter or a metric derived from several."""

    id: Handle
    name: str = ""


class KindNames(msgspec.Struct):
    """A kind of record and the names of its operations."""

    kind: str = ""
    operations: list[str] = []


class MarkerText(msgspec.Struct):
    """The text of a marker by its correlation id."""

    key: int
    value: str


class Names(msgspec.Struct):
    """The file's tables of names."""

    buffer_records: list[KindNames] = []
    marker_api: list[MarkerText] = []

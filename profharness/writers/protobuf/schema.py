"""Field numbers of the Perfetto messages that are written here, named as in the .proto files.

Source: google/perfetto, protos/perfetto/trace (v58); `Gpu...` extensions at 1000 and 3000 are from
gpu/gpu_interned_data.proto and gpu/gpu_track_event.proto and need trace processor v55 or newer.
"""

from __future__ import annotations

BOOTTIME = 6
REALTIME = 1
STATE_CLEARED = 1
NEEDS_STATE = 2


class Packet:
    """TracePacket."""

    CLOCK_SNAPSHOT = 6
    TIMESTAMP = 8
    SEQUENCE = 10
    TRACK_EVENT = 11
    INTERNED_DATA = 12
    SEQUENCE_FLAGS = 13
    SYSTEM_INFO = 45
    GPU_RENDER_STAGE_EVENT = 53
    TRACK_DESCRIPTOR = 60
    TRACE_UUID = 89
    MACHINE_ID = 98
    TRACE_ATTRIBUTES = 126
    GPU_INFO = 128


class Interned:
    """InternedData; messages in it have iid = 1 and name = 2 where nothing else is said."""

    EVENT_CATEGORIES = 1
    EVENT_NAMES = 2
    DEBUG_ANNOTATION_NAMES = 3
    GRAPHICS_CONTEXTS = 23
    GPU_SPECIFICATIONS = 24
    DEBUG_ANNOTATION_STRING_VALUES = 29
    COMPUTE_KERNELS = 1000
    COMPUTE_ARG_NAMES = 1001


class RenderStage:
    """GpuRenderStageEvent."""

    EVENT_ID = 1
    DURATION = 2
    CONTEXT = 5
    GPU_ID = 11
    HW_QUEUE_IID = 13
    STAGE_IID = 14
    KERNEL_IID = 19
    NAME_IID = 20
    LAUNCH = 21


class Launch:
    """GpuRenderStageEvent.ComputeKernelLaunch and its ExtraComputeArg."""

    GRID_SIZE = 1
    WORKGROUP_SIZE = 2
    ARGS = 3
    ARG_NAME_IID = 1
    ARG_INT = 3
    ARG_DOUBLE = 5
    ARG_TEXT = 6


class ComputeKernel:
    """InternedComputeKernel."""

    NAME = 2
    ARGS = 5


class Context:
    """InternedGraphicsContext; api numbers of InternedGraphicsContext.Api."""

    PID = 2
    API = 3
    UNDEFINED = 0
    CUDA = 4
    HIP = 5


class StageSpec:
    """InternedGpuRenderStageSpecification."""

    NAME = 2
    DESCRIPTION = 3
    CATEGORY = 4
    OTHER = 0
    COMPUTE = 2


class TrackEvent:
    """TrackEvent and its types, with the extensions of GpuTrackEvent."""

    CATEGORY_IIDS = 3
    DEBUG_ANNOTATIONS = 4
    TYPE = 9
    NAME_IID = 10
    TRACK_UUID = 11
    DOUBLE_COUNTER_VALUE = 44
    FLOW_IDS = 47
    TERMINATING_FLOW_IDS = 48
    CORRELATION_ID = 52
    GPU_CORRELATION = 3000
    GPU_API = 3001
    BEGIN = 1
    END = 2
    COUNTER = 4
    SUBMISSION_EVENT_IDS = 1


class Annotation:
    """DebugAnnotation."""

    NAME_IID = 1
    INT = 4
    DOUBLE = 5
    TEXT = 6
    STRING_IID = 17


class Track:
    """TrackDescriptor with ProcessDescriptor, ThreadDescriptor and CounterDescriptor."""

    UUID = 1
    NAME = 2
    PROCESS = 3
    THREAD = 4
    PARENT_UUID = 5
    COUNTER = 8
    CHILD_ORDERING = 11
    SIBLING_ORDER_RANK = 12
    DESCRIPTION = 14
    EXPLICIT = 3
    PID = 1
    PROCESS_NAME = 6
    PROCESS_LABELS = 8
    TID = 2
    THREAD_NAME = 5
    UNIT = 3
    UNIT_NAME = 6
    Y_AXIS_SHARE_KEY = 7
    UNIT_BYTES = 3


class Gpu:
    """GpuInfo.Gpu."""

    GPUS = 1
    NAME = 1
    VENDOR = 2
    MODEL = 3
    UUID = 5
    EXTRA_INFO = 6
    PCI_BDF = 7


class Clocks:
    """ClockSnapshot."""

    CLOCKS = 1
    CLOCK_ID = 1
    TIMESTAMP = 2
    PRIMARY_TRACE_CLOCK = 2


class System:
    """SystemInfo and Utsname."""

    UTSNAME = 1
    NUM_CPUS = 8
    MACHINE_NAME = 17
    SYSNAME = 1
    VERSION = 2
    RELEASE = 3
    MACHINE = 4


class Attributes:
    """TraceAttributes."""

    ATTRIBUTE = 1
    KEY = 1
    LONG_VALUE = 2
    STRING_VALUE = 3

"""What runtimes and drivers call their functions, under the name by which the analysis knows it."""

from profharness.trace.call_names import (
    COPY_CALL,
    EVENT_WAIT,
    GRAPH_LAUNCH,
    HOST_FUNCTION,
    LAUNCH,
    STREAM_SYNCHRONISE,
    SYNCHRONISE,
    matching,
)

__all__ = [
    "COPY_CALL",
    "EVENT_WAIT",
    "GRAPH_LAUNCH",
    "HOST_FUNCTION",
    "LAUNCH",
    "STREAM_SYNCHRONISE",
    "SYNCHRONISE",
    "matching",
]

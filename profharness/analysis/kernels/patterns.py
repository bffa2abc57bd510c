"""What runtimes and drivers call their functions, under the name by which the analysis knows it."""

from profharness.trace.call_names import (
    CAPTURE_BEGIN,
    CAPTURE_END,
    COPY_CALL,
    EVENT_WAIT,
    GRAPH_LAUNCH,
    LAUNCH,
    SYNCHRONISE,
    matching,
)

__all__ = [
    "CAPTURE_BEGIN",
    "CAPTURE_END",
    "COPY_CALL",
    "EVENT_WAIT",
    "GRAPH_LAUNCH",
    "LAUNCH",
    "SYNCHRONISE",
    "matching",
]

"""One colour for one thing on the whole page: every plot, bar and chip takes its colours from here.

Each has a contrast of about 3:1 against a light and a dark page. Colours of text, axes and grid are
not here: they are the style sheet's.
"""

from __future__ import annotations

from profharness.report.text import names

BACKENDS = {
    "torch": "#d1495b",
    "onnxruntime": "#2e75b6",
    "tensorflow": "#e07b00",
    "deepsparse": "#2a9d8f",
}
CURVES = (
    "#3a8f5c",
    "#8057c2",
    "#b8860b",
    "#0e8fa8",
    "#b0478f",
    "#6b7f1e",
    "#5b6fd6",
    "#a0623a",
)
"""Of curves that have no colour of their own: other backends, batch sizes, devices, layers."""

COMPUTE, COMMUNICATION, COPY, IDLE = "#0f8b8d", "#6d5bd0", "#2f74c0", "#98a3ae"
CAUSES = {
    "compute_ns": COMPUTE,
    "exposed_communication_ns": COMMUNICATION,
    "exposed_copy_ns": COPY,
    "host_not_ready_ns": "#d9730d",
    "launch_in_progress_ns": "#e0a526",
    "synchronisation_ns": "#c2366b",
    "waiting_copy_or_event_ns": "#8f6bb8",
    "queued_gap_ns": "#a1762b",
    "no_host_record_ns": "#b3bcc5",
    "idle_or_not_recorded_ns": "#d5dbe1",
    "idle_ns": IDLE,
}
"""Of the parts of a window, by the field of the partition's record."""

MEASURES = {
    names.GPU_PERCENT: "#8d99a6",
    names.BUSY: "#4f86c6",
    "busy_bare": "#4f86c6",
    names.FILL: "#12807a",
    names.FILL_BARE: "#12807a",
    names.WAVE_FILL: "#5b8c2a",
    names.BANDWIDTH_SHARE: "#7d4fb8",
    names.MEMORY_ACTIVITY: "#9a6fd0",
    names.MFU: "#c93c7c",
    names.POWER_SATURATION: "#cc6a1c",
    "power_vs_gemm": "#94702d",
}
"""Of shares of what a device can do, by metric."""

OPERATORS, KERNELS, BOUND = "#1a7f5a", "#c8641b", "#7a8694"
"""Of marks of operators and of kernels, and of what bounds them: ceilings, caps, allowed cores."""

REQUEST = {
    "part_transport_out": "#3c7dc4",
    "part_before": "#5a93d1",
    "part_transport": "#3c7dc4",
    "part_queue": "#d67f24",
    "part_input": "#9c7a3c",
    "part_hand_over": "#6f7d8c",
    "part_model": "#178a80",
    "part_infer": "#178a80",
    "part_output": "#c9a35b",
    "part_after": "#8db3e2",
    "part_transport_back": "#8db3e2",
}
"""Of the parts of a request; neighbours differ in lightness too."""


def curve_color(backend: str, place: int, *, alone: bool) -> str:
    """The colour of a curve: its backend's where the backend has one curve (`alone`), else that of
    its `place` among the curves.
    """
    own = BACKENDS.get(backend) if alone else None
    return own or CURVES[place % len(CURVES)]

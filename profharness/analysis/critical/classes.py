"""The classes of time on a critical path, with their names for people and for JSON."""

from __future__ import annotations

from profharness.analysis.host.kinds import Kind

KERNEL, COLLECTIVE, COPY, LAUNCH_LATENCY, STREAM_GAP, EVENT_WAIT, SYNC_RETURN = range(
    len(Kind), len(Kind) + 7
)
"""Classes of time outside of the host's own rows; the codes below them are those of `Kind`."""

_DEVICE = {
    KERNEL: ("kernel", "kernels"),
    COLLECTIVE: ("collective", "collectives"),
    COPY: ("copy", "copies"),
    LAUNCH_LATENCY: ("launch_latency", "launch latency"),
    STREAM_GAP: ("stream_gap", "gaps between work of a stream"),
    EVENT_WAIT: ("event_wait", "waiting for other work"),
    SYNC_RETURN: ("sync_return", "return after waiting for the device"),
}
HOST_PREFIX = "host_"

KEYS: tuple[str, ...] = tuple(
    ["nothing_recorded" if kind is Kind.NOTHING else HOST_PREFIX + kind.key for kind in Kind]
    + [key for key, _ in _DEVICE.values()]
)
"""The name of each code in JSON."""

LABELS: dict[str, str] = {
    **{
        key: "nothing recorded" if kind is Kind.NOTHING else f"host: {kind.label}"
        for key, kind in zip(KEYS, Kind, strict=False)
    },
    **dict(_DEVICE.values()),
}
"""What people read, by the name in JSON."""

"""The most that clients accept to wait, as a run was asked: `p99=20ms`. Pure."""

from __future__ import annotations

import msgspec

from profharness.errors import UsageError
from profharness.units import parse_duration_ns

PERCENTILES = ("p50", "p90", "p95", "p99", "p99_9")


class LatencyLimit(msgspec.Struct, frozen=True):
    """`p99=20ms`: this percentile (or the mean) of the corrected latency must not exceed
    `limit_ms`.
    """

    name: str
    limit_ms: float


def parse_latency_limit(text: str) -> LatencyLimit | None:
    """None for an empty text. Raises UsageError for one that is not `p99=20ms` or `mean=5ms`."""
    if not text:
        return None
    name, _, limit = text.partition("=")
    name = name.strip().lower().replace(".", "_")
    if name not in (*PERCENTILES, "mean") or not limit.strip():
        raise UsageError(
            f"--latency-limit: {text!r} is not a limit",
            f"write p99=20ms; known: {', '.join(PERCENTILES)}, mean",
        )
    return LatencyLimit(name, parse_duration_ns(limit, "--latency-limit") / 1e6)


def limits_kept(
    limit: LatencyLimit | None, percentiles_ms: dict[str, float], mean_ms: float | None
) -> bool | None:
    """Whether a level keeps the limit; None where too few requests say."""
    if limit is None:
        return True
    found = mean_ms if limit.name == "mean" else percentiles_ms.get(limit.name)
    return None if found is None else found <= limit.limit_ms

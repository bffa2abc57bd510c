"""`--device-counters-from`: whether the exporter that the user named can be used, asked before
anything is written or started.
"""

from __future__ import annotations

import os

from profharness.errors import Unavailable, UsageError
from profharness.telemetry.sources import Target
from profharness.telemetry.sources.amd.exporter import family
from profharness.telemetry.sources.amd.exporter.source import NAME, exporter_of

OPTION = "--device-counters-from"


def check(url: str, *, counts: bool) -> None:
    """Raises UsageError for what is no address, or where this run counts on the devices itself."""
    try:
        exporter_of(url)
    except ValueError as error:
        raise UsageError(
            f"{OPTION}: {error}",
            "write http://HOST:PORT/metrics, without user and query, or rdci for RDC's daemon",
        ) from None
    if counts:
        raise UsageError(
            f"{OPTION} and counting on the devices both give their counters, and only one profiler "
            "may hold them",
            "leave one of them out",
        )


def require(url: str) -> None:
    """Raises Unavailable, in one sentence, where no figure of this node's devices can come from
    there.
    """
    sysfs = os.environ.get("PROFHARNESS_SYSFS", "/sys")
    for source in family.open_sources(Target(0, "", 1.0, sysfs, exporter=url)):
        why = next((one.why for one in source.probe() if one.metric == NAME), "")
        if hasattr(source, "close"):
            source.close()
        if why:
            raise Unavailable(
                f"{OPTION} cannot be used here: {why}",
                f"look at what {_asked(url)} prints on this node, or leave the option out",
            )


def _asked(url: str) -> str:
    """What a user can type to see the same."""
    return "rdci dmon -u -l" if url.startswith("rdci") else "curl of that address"

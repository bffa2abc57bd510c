"""What the sampler says of itself at the head of its samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from profharness import __version__
from profharness.telemetry.sources import Missing
from profharness.telemetry.spec import Spec

_BOOT_ID = "/proc/sys/kernel/random/boot_id"


def facts(spec: Spec, period_ns: int, missing: Sequence[Missing]) -> dict[str, Any]:
    """Version, place, boot and rate, and what cannot be read; `period_ns` is that of the ticks."""
    try:
        with open(_BOOT_ID, encoding="ascii") as file:  # noqa: PTH123  no pathlib in the sampler
            boot_id = file.read().strip()
    except OSError:
        boot_id = ""
    return {
        "profharness": __version__,
        "host": spec.host,
        "pid": os.getpid(),
        "boot_id": boot_id,
        "hz": spec.hz,
        "period_ns": period_ns,
        "clock": "monotonic",
        "missing": [absent._asdict() for absent in missing],
    }

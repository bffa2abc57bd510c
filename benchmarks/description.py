"""The machine that a measurement ran on, and where its figures are kept."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results"


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def memory(row: str) -> int:
    """MiB of a row of /proc/meminfo."""
    return next(
        int(line.split()[1]) // 1024
        for line in Path("/proc/meminfo").read_text().splitlines()
        if line.startswith(row)
    )


def machine(packages: Iterable[str]) -> dict[str, object]:
    """What the figures depend on; nothing that names the machine or its folders."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_mib": memory("MemTotal"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
        "load_average": [round(one, 2) for one in os.getloadavg()],
    }


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


def keep(name: str, results: dict[str, object]) -> Path:
    """Write results/NAME-DATE.json; returns its path."""
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{name}-{today()}.json"
    target.write_text(json.dumps({"date": today(), **results}, indent=1) + "\n")
    return target

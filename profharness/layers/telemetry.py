"""The telemetry layer: one sampler process per node beside the run; it also takes the clock
snapshots.

It is always there: with `--telemetry off` it only reads the clocks, since nothing can be aligned
without them.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.launchers.command import Command
from profharness.rundir.paths import write_atomic
from profharness.telemetry.sources import foreign_names


def sampler_command(spec_path: Path) -> Command:
    """How the sampler is started: with the harness's own interpreter, by argv."""
    package_root = str(Path(__file__).resolve().parent.parent.parent)
    return Command(
        (sys.executable, "-m", "profharness.telemetry", "--spec", str(spec_path))
    ).with_path_entry("PYTHONPATH", package_root, os.environ.get("PYTHONPATH"))


SOURCES: dict[str, tuple[str, ...]] = {
    "auto": ("cpu", "gpu"),
    "off": (),
    "cpu": ("cpu",),
    "amd": ("cpu", "amd"),
    "amdsmi": ("cpu", "amdsmi"),
    "nvml": ("cpu", "nvml"),
}
UNNAMED = ("auto", "off", "cpu")  # values that ask for no accelerator's source by its name


def names() -> tuple[str, ...]:
    """The values of `--telemetry`; sources of other packages stand for themselves."""
    return (*SOURCES, *foreign_names())


def sources_of(telemetry: str) -> tuple[str, ...]:
    """The families of sources that a value of `--telemetry` means: `auto` is all that there are."""
    if telemetry == "auto":
        return (*SOURCES["auto"], *foreign_names())
    return SOURCES.get(telemetry, ("cpu", telemetry))


@dataclass(frozen=True)
class Counting:
    """Hardware counters of whole devices beside the other samples: so often per second, and only
    while the file `gate` is there (always, without one).
    """

    hz: float
    gate: Path | None = None


@dataclass(frozen=True)
class Beside:
    """What the sampler does beside its samples: count on the devices, ask the `exporter` at an
    address, and set the power caps of `caps_file` again when it ends.
    """

    counting: Counting | None = None
    exporter: str = ""
    caps_file: str = ""


def spec_json(
    folder: Path,
    host: str,
    telemetry: str,
    hz: float,
    beside: Beside = Beside(),
) -> bytes:
    """The sampler's settings as JSON, from the value of `--telemetry` and a rate. `roots_file` is
    where the harness appends the pids to follow. Tests put emulated hardware in the place of /sys
    by PROFHARNESS_SYSFS.
    """
    counting = beside.counting
    counted = ("device-counters",) if counting else ()
    if beside.exporter:
        counted = (*counted, "counters-exporter")
    return msgspec.json.encode(
        {
            "output_dir": str(folder),
            "host": host,
            "hz": hz,
            "parent_pid": os.getpid(),
            "roots_file": str(folder / f"{host}.roots"),
            "sources": (*sources_of(telemetry), *counted),
            "counters_hz": counting.hz if counting else 0.0,
            "counting_gate": str(counting.gate or "") if counting else "",
            "exporter": beside.exporter,
            "caps_file": beside.caps_file,
            "sysfs": os.environ.get("PROFHARNESS_SYSFS", "/sys"),
        }
    )


IDLE_LIMIT_S = 600.0


def let_rest(folder: Path, host: str, seconds: float) -> None:
    """`--idle-seconds`: let the devices rest before the workload begins, and note when, for the
    reader of the samples.
    """
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    time.sleep(seconds)
    write_atomic(
        folder / f"{host}.idle.json",
        msgspec.json.encode(
            {
                "v": 1,
                "start_boot_ns": start,
                "end_boot_ns": time.clock_gettime_ns(time.CLOCK_BOOTTIME),
            }
        ),
    )


class Ready(msgspec.Struct, frozen=True):
    """What the sampler says once it runs: the sources that it reads, and what is missing with its
    reason.
    """

    sources: tuple[dict[str, object], ...] = ()
    missing: tuple[dict[str, str], ...] = ()

    def why_missing(self, family: str) -> str:
        """Why none of a family's sources is read; empty where one is."""
        if any(str(source["name"]).startswith(family) for source in self.sources):
            return ""
        return next(
            (absent["why"] for absent in self.missing if absent["metric"] == family),
            "it offers no value",
        )

"""Measure a device's ceilings: starts `wrappers/profharness_workloads/checks/calibrate_torch.py`
under the workload's Python and types its answer.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import msgspec

from profharness import layers
from profharness.errors import Unavailable
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.measure.calibration_power import Held, PowerWatch, Ran
from profharness.node import probe as environment
from profharness.node.ceilings import Calibration
from profharness.node.probe import Environment

FIGURES = 10  # types of matrix products, the copy, the launches
LONGEST_S = 600.0
PROBE_S = 60.0
NO_GPU = "sees no GPU"  # the script's words


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The script's answer. A CPU has no name there: torch does not know it."""

    kind: str
    name: str
    host: str
    compute_units: int
    architecture: str = ""
    software: dict[str, str] = {}
    gemm_flops: dict[str, float]
    copy_bytes_per_s: float
    launch_ns: float
    round_trip_ns: float
    identities: tuple[str, ...] = ()
    held: Held | None = None
    notes: tuple[str, ...] = ()
    rounds: dict[str, tuple[float, ...]] = {}
    ran: Ran | None = None


def calibrate(
    device: str, python: str = "", seconds: float = 1.0, threads: int | None = None
) -> Calibration:
    """Measure `device` (auto, cpu, cuda, cuda:N) for about `seconds` per figure. Raises Unavailable
    without torch or the device.

    `threads` are those of a CPU; None leaves their number to torch.
    """
    with PowerWatch() as watch:
        watch.rest()
        power_seconds = watch.seconds(seconds)
        words = (
            "--device",
            device,
            "--seconds",
            f"{seconds:g}",
            "--threads",
            str(threads or 0),
            "--power-seconds",
            f"{power_seconds:g}",
        )
        calibration, measured = _measured(
            device, python, words, LONGEST_S + FIGURES * seconds + power_seconds
        )
    return watch.completed(calibration, measured.held, measured.identities, measured.ran)


def _measured(
    device: str, python: str, words: tuple[str, ...], limit_s: float
) -> tuple[Calibration, Measured]:
    launcher, interpreter = LocalLauncher(), python or sys.executable
    node = environment.parse(launcher.capture(layers.probe_command(interpreter), PROBE_S))
    script = str(wrappers_dir() / "profharness_workloads" / "checks" / "calibrate_torch.py")
    try:
        output = launcher.capture(Command((interpreter, script, *words)), limit_s)
    except Unavailable as error:
        if NO_GPU not in error.message:
            raise
        raise Unavailable(
            error.message.rpartition(" failed: ")[2],
            "install a CUDA or ROCm build of torch, look at CUDA_VISIBLE_DEVICES and "
            "HIP_VISIBLE_DEVICES, or use --device cpu",
        ) from error
    try:
        measured = msgspec.json.decode(
            output.strip().splitlines()[-1] if output.strip() else b"", type=Measured
        )
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise Unavailable(
            f"the calibration gave no readable answer ({error})", "run it by hand: " + script
        ) from error
    return typed(measured, device, node, datetime.now(UTC).isoformat(timespec="seconds")), measured


def typed(measured: Measured, device: str, node: Environment, created: str) -> Calibration:
    """The record to keep: with the CPU's model as its name, and with the probe's name of an
    accelerator beside torch's.
    """
    name = measured.name or node.cpu_model or measured.kind
    aliases: tuple[str, ...] = ()
    number = device.partition(":")[2]
    position = int(number) if number.isdigit() else 0
    if measured.kind != "cpu" and position < len(node.accelerators):
        other = node.accelerators[position].name
        aliases = (other,) if other and other != name else ()
    return Calibration(
        created=created,
        host=measured.host,
        kind=measured.kind,
        name=name,
        aliases=aliases,
        architecture=measured.architecture,
        compute_units=measured.compute_units,
        software=measured.software,
        gemm_flops=measured.gemm_flops,
        copy_bytes_per_s=measured.copy_bytes_per_s,
        launch_ns=measured.launch_ns,
        round_trip_ns=measured.round_trip_ns,
        notes=measured.notes,
        rounds=measured.rounds,
    )

"""`profharness calibrate`: measure what the device at hand reaches, and keep it for the roofline
and the verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.errors import UsageError
from profharness.report.table import Column, Table, row_of
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import encoded, mention
from profharness.units import format_ns, format_share

if TYPE_CHECKING:
    from profharness.node.ceilings import Calibration
    from profharness.node.devices import Accelerator, Dtype


def calibrate(
    device: Annotated[
        str,
        typer.Option(
            "--device", help="auto, cpu, cuda or cuda:INDEX (cuda is also ROCm's name in torch)."
        ),
    ] = "auto",
    python: Annotated[
        str, typer.Option(help="The workload's interpreter (default: this one).")
    ] = "",
    threads: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=(
                "CPU threads: take the number that the runs to be judged use (default: that of "
                "torch). Results for other numbers are kept."
            ),
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.05, help="Time for each figure, in s.")] = 1.0,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure matrix products by type, copy bandwidth and launches on this device, and keep them
    for the reports.
    """
    from profharness.cli.running import left_caps
    from profharness.measure.calibrate import calibrate as measure
    from profharness.node.ceilings import kept_of, store
    from profharness.stats.calibration_watch import completed

    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", device):
        raise UsageError(
            f"--device: there is no device {device!r}", "auto, cpu, cuda or cuda:INDEX"
        )
    if threads is not None and device.startswith("cuda"):
        raise UsageError(
            f"--threads: are of a CPU, not of {device}", "leave them out, or use --device cpu"
        )
    left_caps.set_again()
    found = measure("cpu" if threads is not None else device, python, seconds, threads)
    earlier = kept_of(found)
    whole = found if earlier is None else completed(found, earlier)
    path = store(whole)
    if json:
        typer.echo(encoded(found).decode())
        return
    typer.echo("\n".join(lines_of(found)))
    taken = [one.figure for one in found.doubts if not whole.doubt(one.figure)]
    mention(
        f"kept in {path}; reports of runs on this device use it"
        + (f", with {', '.join(taken)} of an earlier calibration" if taken else "")
        + (", but for what is doubtful" if whole.doubts else "")
    )


def lines_of(found: Calibration) -> Iterator[str]:
    """The figures as a table, with the share of the data sheet's peak where that is known."""
    from profharness.node.devices import identify

    units = ("core" if found.kind == "cpu" else "compute unit") + (
        "" if found.compute_units == 1 else "s"
    )
    software = ", ".join(f"{name} {version}" for name, version in found.software.items())
    yield f"device     {found.name}, {found.compute_units} {units}; {software}"
    sheet = identify(
        name="" if found.kind == "cpu" else found.name,
        architecture=found.architecture,
        compute_units=None if found.kind == "cpu" else found.compute_units,
    )
    rows = [*_rates(found, sheet), *_times_and_power(found)]
    columns = (Column(width=10), Column("value", "right", width=14, gap=" "), Column(gap="   "))
    yield from listing(Table("ceilings", columns, tuple(row_of(*row) for row in rows)))
    if found.kind != "cpu" and sheet.unknown:
        yield f"not known  {', '.join(sheet.unknown)}: no source gives them for this device"
    for note in found.notes:
        yield f"left out   {note}"
    reasons: dict[str, list[str]] = {}
    for doubt in found.doubts:
        reasons.setdefault(doubt.why, []).append(doubt.figure)
    for why, figures in reasons.items():
        yield f"doubtful   {', '.join(figures)}: {why}; no ceiling: calibrate on a quiet node"


def _rates(found: Calibration, sheet: Accelerator) -> Iterator[tuple[str, str, str]]:
    """Products by type and copies, with their share of the data sheet where that knows them."""
    from profharness.report.text.figures import quantity_text

    for name, rate in found.gemm_flops.items():
        dtype = next((known for known in _TYPES if known == name), None)
        peak = sheet.best_peak(dtype) if dtype else None
        yield f"GEMM {name:<5}", quantity_text(rate, "FLOP/s"), _share(rate, peak and peak[0])
    if found.copy_bytes_per_s:
        share = _share(found.copy_bytes_per_s, sheet.bandwidth)
        remark = "   ".join(part for part in (share, "read and written") if part)
        yield "copy", quantity_text(found.copy_bytes_per_s, "B/s"), remark


def _share(rate: float, peak: float | None) -> str:
    return f"{format_share(rate / peak)} of the data sheet" if peak else ""


def _times_and_power(found: Calibration) -> Iterator[tuple[str, str, str]]:
    if found.launch_ns and found.round_trip_ns:
        yield "launch", format_ns(found.launch_ns), f"round trip {format_ns(found.round_trip_ns)}"
    if found.gemm_power_w is not None:
        idle = f"{found.idle_power_w:.0f} W" if found.idle_power_w is not None else "not measured"
        yield "power", f"{found.gemm_power_w:.0f} W", f"at rest {idle}; {found.power_scope}"


_TYPES: tuple[Dtype, ...] = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")

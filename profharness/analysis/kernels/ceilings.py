"""The two roofs over a device: operations per second by type, and memory bandwidth; measured there
where that was done, else the data sheet; of a device that no data sheet is known of, what the tool
that recorded it says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from profharness.analysis.kernels.accelerators import of_device
from profharness.node.ceilings import COPY, Calibration
from profharness.node.ceilings import of_device as calibration_of
from profharness.node.devices import Accelerator, Dtype, identify
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, ToolCeiling, Trace

REACHED = 0.6
"""A kernel that reaches this share of a measured ceiling is bound by it
(docs/metrics.md#roofline).
"""

CALIBRATED = "calibrated"
"""The word by which a measured ceiling is known in the notes of figures."""
BENCHMARK = "roofline benchmark"
"""The same of a ceiling that the recording tool measured."""

ABOVE_SHEET, ABOVE_MEASURED = 1.05, 1.2
"""Shares of a ceiling that no program exceeds: clocks may lie a little above the data sheet's, and
what one program reached another may beat.
"""

OF_SHEET = "the data sheet's peak"
"""What sentences call the dense peak."""

QUIET = "`profharness calibrate` on a quiet node"
NO_CEILING = "a known device, or `profharness calibrate` on it"


@dataclass(frozen=True)
class Ceiling:
    """One roof in FLOP/s or B/s. `measured` says that a program reached it on this device; `source`
    is where it comes from, and `spoken` what sentences call it.
    """

    value: float
    source: str
    spoken: str
    measured: bool

    @property
    def limit(self) -> float:
        """What is beyond any doubt too much, in FLOP/s or B/s."""
        return self.value * (ABOVE_MEASURED if self.measured else ABOVE_SHEET)


@dataclass(frozen=True)
class Ceilings:
    """The roofs of one device. `calibration` is None where it was not measured; `needs` says what
    would give the roofs that it lacks. `by_tool` are those of the tool that recorded the device,
    of figures that no data sheet gives; `beyond` those of them that work went beyond, and why they
    are not believed.
    """

    device: Accelerator
    calibration: Calibration | None = None
    needs: str = NO_CEILING
    by_tool: tuple[ToolCeiling, ...] = ()
    beyond: tuple[tuple[ToolCeiling, str], ...] = ()

    def flops(self, dtype: Dtype) -> Ceiling | None:
        """The ceiling of matrix work in a type: the measured product of such matrices, else the
        dense peak, else what the recording tool says.
        """
        measured = self.calibration.believed(dtype) if self.calibration is not None else None
        if measured:
            source = f"{CALIBRATED} GEMM, {dtype}"
            return Ceiling(measured, source, "the measured GEMM", measured=True)
        return self.peak(dtype) or self._of_tool(dtype)

    def reach(self, dtype: Dtype) -> float | None:
        """The share of `flops` that programs reach: all of a measured product; of a data sheet's
        peak what was published of such devices, None where nothing was.
        """
        ceiling = self.flops(dtype)
        if ceiling is not None and ceiling.measured:
            return 1.0
        return self.device.reached_share(dtype)

    def needs_of(self, figure: str) -> str:
        """What would give the roof of a type, or of `COPY`, where there is none."""
        why = "" if self.calibration is None else self.calibration.doubt(figure)
        return f"{QUIET}, as {measured_name(figure)} is not believed: {why}" if why else self.needs

    def exceeded(self, figure: str, times: float) -> Ceilings:
        """The roofs without a measured one that work went beyond, by this factor."""
        why = exceeded_by(times)
        if self.calibration is not None and self.calibration.believed(figure):
            return replace(self, calibration=self.calibration.doubted(figure, why))
        mine = tuple(one for one in self.by_tool if one.figure == figure and one.measured)
        return replace(
            self,
            by_tool=tuple(one for one in self.by_tool if one not in mine),
            beyond=(*self.beyond, *((one, why) for one in mine)),
        )

    def _of_tool(self, figure: str) -> Ceiling | None:
        return next(
            (
                Ceiling(one.rate, f"{one.source}, {of_figure(figure)}", one.source, one.measured)
                for one in self.by_tool
                if one.figure == figure
            ),
            None,
        )

    def peak(self, dtype: Dtype, clock_mhz: float | None = None) -> Ceiling | None:
        """The dense peak of the data sheet, at its clock or at the one given; of fp32 and fp64 the
        higher of vector and matrix units.
        """
        best = self.device.best_peak(dtype, clock_mhz)
        if best is None:
            return None
        at = f" at {clock_mhz:.0f} MHz" if clock_mhz else ""
        source = f"data sheet, {best[1].replace('_', ' ')}{at}"
        return Ceiling(best[0], source, OF_SHEET, measured=False)

    @property
    def bandwidth(self) -> Ceiling | None:
        """The ceiling of memory traffic: the measured copy, else the data sheet, else what the
        recording tool says.
        """
        measured = self.calibration.believed(COPY) if self.calibration is not None else None
        if measured:
            return Ceiling(measured, f"{CALIBRATED} copy", "the measured copy", measured=True)
        sheet = self.device.bandwidth
        if not sheet:
            return self._of_tool(COPY)
        return Ceiling(sheet, "data sheet", "the data sheet's bandwidth", measured=False)


def measured_name(figure: str) -> str:
    """What a measured ceiling is called: `the calibrated GEMM, fp32`."""
    return f"the {CALIBRATED} copy" if figure == COPY else f"the {CALIBRATED} GEMM, {figure}"


def of_figure(figure: str) -> str:
    """What a figure is a ceiling of: `products in fp16`."""
    return "memory bandwidth" if figure == COPY else f"products in {figure}"


def exceeded_by(times: float) -> str:
    """Why a ceiling is not believed that work goes beyond."""
    return (
        f"this work does {times:.3g} times of it, so that it was measured beside other work, or "
        "the work is less than it is taken for"
    )


def of_trace(
    trace: Trace,
    calibrations: Iterable[Calibration] = (),
    software: dict[str, str] | None = None,
    *,
    beside: Trace | None = None,
) -> dict[int, Ceilings]:
    """The roofs of each device of a trace, by its position. Of a device that is not known, those of
    the tool that recorded it here or `beside`, in another pass of the same run.
    """
    measured = tuple(calibrations)
    told = [one for one in (*trace.devices, *(beside.devices if beside else ())) if one.ceilings]
    roofs = {}
    for position in {
        int(device) for device in set(trace.kernels.device.tolist()) if device != NULL
    }:
        record = trace.devices[position]
        device = of_device(record)
        roofs[position] = Ceilings(
            device,
            calibration_of(
                measured, name=record.name, compute_units=device.compute_units, software=software
            )
            if record.name
            else None,
            _needs(device),
            _by_tool(record, device, told),
        )
    return roofs


def _by_tool(
    record: Device, device: Accelerator, told: Iterable[Device]
) -> tuple[ToolCeiling, ...]:
    """What a tool says of the device, or of one like it, where no data sheet does."""
    every = (record, *told)
    found = next((one.ceilings for one in every if one.ceilings and _alike(one, record)), ())
    return tuple(
        one
        for one in found
        if not (
            device.bandwidth if one.figure == COPY else device.best_peak(cast("Dtype", one.figure))
        )
    )


def _alike(one: Device, other: Device) -> bool:
    """Whether two records may be of one model: of one name, or of one size and architecture as far
    as both say it, and one of these said by both.
    """
    if one is other or (one.name and one.name == other.name):
        return True
    pairs = (
        (one.architecture.partition(":")[0], other.architecture.partition(":")[0]),
        (one.compute_units, other.compute_units),
    )
    both = [(mine, others) for mine, others in pairs if mine and others]
    return bool(both) and all(mine == others for mine, others in both)


def of_name(
    name: str,
    calibrations: Iterable[Calibration],
    *,
    architecture: str = "",
    compute_units: int | None = None,
    software: dict[str, str] | None = None,
) -> Ceilings:
    """The roofs of a device that only a name (and perhaps its size) is known of: an accelerator, or
    a CPU by its model.
    """
    device = identify(name=name, architecture=architecture, compute_units=compute_units)
    return Ceilings(
        device,
        calibration_of(calibrations, name=name, compute_units=compute_units, software=software),
        _needs(device),
    )


def _needs(device: Accelerator) -> str:
    """What would give the roofs that a device lacks; of a product that is known in part, with what
    no source gives.
    """
    if device.model is None or not device.unknown:
        return NO_CEILING
    return (
        f"`profharness calibrate` on this device: no source gives the {', '.join(device.unknown)} "
        f"of the {device.model.name}"
    )

"""The two roofs over a device: operations per second by type, and memory bandwidth; measured there
where that was done, else the data sheet.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from profharness.analysis.kernels.accelerators import of_device
from profharness.node.ceilings import COPY, Calibration
from profharness.node.ceilings import of_device as calibration_of
from profharness.node.devices import Accelerator, Dtype, identify
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace

REACHED = 0.6
"""A kernel that reaches this share of a measured ceiling is bound by it
(docs/metrics.md#roofline).
"""

CALIBRATED = "calibrated"
"""The word by which a measured ceiling is known in the notes of figures."""

ABOVE_SHEET, ABOVE_MEASURED = 1.05, 1.2
"""Shares of a ceiling that no program exceeds: clocks may lie a little above the data sheet's, and
what one program reached another may beat.
"""

QUIET = "`profharness calibrate` on a quiet node"
NO_CEILING = "a known device, or `profharness calibrate` on it"


@dataclass(frozen=True)
class Ceiling:
    """One roof in FLOP/s or B/s. `measured` says that a program reached it on this device; `source`
    is where it comes from.
    """

    value: float
    source: str
    measured: bool

    @property
    def limit(self) -> float:
        """What is beyond any doubt too much, in FLOP/s or B/s."""
        return self.value * (ABOVE_MEASURED if self.measured else ABOVE_SHEET)


@dataclass(frozen=True)
class Ceilings:
    """The roofs of one device. `calibration` is None where it was not measured; `needs` says what
    would give the roofs that it lacks.
    """

    device: Accelerator
    calibration: Calibration | None = None
    needs: str = NO_CEILING

    def flops(self, dtype: Dtype) -> Ceiling | None:
        """The ceiling of matrix work in a type: the measured product of such matrices, else the
        dense peak.
        """
        measured = self.calibration.believed(dtype) if self.calibration is not None else None
        if measured:
            return Ceiling(measured, f"{CALIBRATED} GEMM, {dtype}", measured=True)
        return self.peak(dtype)

    def reach(self, dtype: Dtype) -> float | None:
        """The share of `flops` that programs reach: all of a measured product; of a data sheet's
        peak what was published of such devices, None where nothing was.
        """
        ceiling = self.flops(dtype)
        if ceiling is not None and ceiling.measured:
            return 1.0
        return self.device.reached_share(dtype)

    @property
    def measured(self) -> bool:
        """Whether all that was measured of the device is believed."""
        return self.calibration is not None and not self.calibration.doubts

    def needs_of(self, figure: str) -> str:
        """What would give the roof of a type, or of `COPY`, where there is none."""
        why = "" if self.calibration is None else self.calibration.doubt(figure)
        return f"{QUIET}, as {measured_name(figure)} is not believed: {why}" if why else self.needs

    def exceeded(self, figure: str, times: float) -> Ceilings:
        """The roofs without a measured one that work went beyond, by this factor."""
        if self.calibration is None:
            return self
        return replace(self, calibration=self.calibration.doubted(figure, exceeded_by(times)))

    def peak(self, dtype: Dtype, clock_mhz: float | None = None) -> Ceiling | None:
        """The dense peak of the data sheet, at its clock or at the one given; of fp32 and fp64 the
        higher of vector and matrix units.
        """
        best = self.device.best_peak(dtype, clock_mhz)
        if best is None:
            return None
        at = f" at {clock_mhz:.0f} MHz" if clock_mhz else ""
        return Ceiling(best[0], f"data sheet, {best[1].replace('_', ' ')}{at}", measured=False)

    @property
    def bandwidth(self) -> Ceiling | None:
        """The ceiling of memory traffic: the measured copy, else the data sheet."""
        measured = self.calibration.believed(COPY) if self.calibration is not None else None
        if measured:
            return Ceiling(measured, f"{CALIBRATED} copy", measured=True)
        sheet = self.device.bandwidth
        return None if sheet is None else Ceiling(sheet, "data sheet", measured=False)


def measured_name(figure: str) -> str:
    """What a measured ceiling is called: `the calibrated GEMM, fp32`."""
    return f"the {CALIBRATED} copy" if figure == COPY else f"the {CALIBRATED} GEMM, {figure}"


def exceeded_by(times: float) -> str:
    """Why a ceiling is not believed that work goes beyond."""
    return (
        f"this work does {times:.3g} times of it, so that it was measured beside other work, or "
        "the work is less than it is taken for"
    )


def of_trace(
    trace: Trace, calibrations: Iterable[Calibration] = (), software: dict[str, str] | None = None
) -> dict[int, Ceilings]:
    """The roofs of each device of a trace, by its position."""
    measured = tuple(calibrations)
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
        )
    return roofs


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

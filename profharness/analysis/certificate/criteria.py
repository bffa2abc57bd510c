"""The criteria of a certificate as a table: id, rule, threshold, what each needs, and a pure
function. `VERSION` grows when a criterion, a threshold or the way to the outcome changes.
"""

from __future__ import annotations

from profharness.analysis.certificate import plateau, saturation, trust
from profharness.analysis.certificate.criterion import Criterion
from profharness.analysis.power.clock_caps import THROTTLED

VERSION = 1

CRITERIA: tuple[Criterion, ...] = (
    Criterion(
        "whole",
        "trust",
        "the run is done, with exit status 0, and the point was measured",
        "a manifest",
        trust.whole,
    ),
    Criterion(
        "findings",
        "trust",
        "no finding of severity error concerns the point or the whole run",
        "nothing",
        trust.findings,
        0.0,
        "findings",
    ),
    Criterion(
        "files",
        "trust",
        "no reader met an error in a file of the run",
        "nothing",
        trust.files,
        0.0,
        "problems",
    ),
    Criterion(
        "plateau",
        "saturation",
        "the throughput over that of the plateau is at least the threshold, by the interval",
        "a scan over larger batch sizes, or over twice as many clients or processes",
        plateau.plateau,
        0.9,
        "share",
    ),
    Criterion(
        "busy",
        "saturation",
        "the device works at least this share of the time",
        "a layer that records kernels, beside a bare pass; or telemetry of the device",
        saturation.busy,
        0.9,
        "share",
    ),
    Criterion(
        "fill",
        "saturation",
        "while kernels run, at least this share of the compute units has work",
        "a layer that records the workgroups of kernels, or counters of the compute units in "
        "telemetry",
        saturation.fill,
        0.75,
        "share",
    ),
    Criterion(
        "limiter",
        "saturation",
        "at least this share of a ceiling is reached, or another limit is proven",
        "FLOPs per item with `profharness calibrate`, or a layer whose kernels can be held against "
        "the ceilings",
        saturation.limiter,
        0.6,
        "share",
    ),
    Criterion(
        "versions",
        "conditions",
        "the device, its driver and the software are recorded",
        "a run whose node could be probed",
        trust.versions,
    ),
    Criterion(
        "clocks",
        "conditions",
        "temperature and signals from outside hold the clock down at most this share of the time",
        "telemetry with throttle residency",
        trust.clocks,
        THROTTLED,
        "share",
    ),
    Criterion(
        "cap",
        "conditions",
        "the power cap is known and did not change",
        "telemetry with the power cap",
        trust.cap,
    ),
    Criterion(
        "others",
        "conditions",
        "no other process used the device; on a CPU, the work did not wait for cores that others "
        "held",
        "telemetry that sees the processes of the device",
        trust.others,
        0.0,
        "processes",
    ),
)

"""What the curves of a scan say, as typed records. Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.findings import Finding
from profharness.stats.estimate import Estimate
from profharness.trace.scan_table import RATE


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """A jump of throughput between two levels: at which level, by which ratio over the trend."""

    at: float
    ratio: float


class BatchCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Fit of T(b) = t_max b / (b^p + b_half^p)^(1/p), and b90 from the measured points."""

    t_max: Estimate
    b_half: Estimate
    p: Estimate
    b90: Estimate


class Usl(msgspec.Struct, frozen=True, kw_only=True):
    """Fit of the Universal Scalability Law."""

    lambda_: Estimate = msgspec.field(name="lambda")
    sigma: Estimate
    kappa: Estimate
    n_peak: Estimate


class Knee(msgspec.Struct, frozen=True, kw_only=True):
    """Concurrency where the asymptotes meet."""

    n: float | None
    low: float | None = None
    high: float | None = None


class Recommended(msgspec.Struct, frozen=True, kw_only=True):
    """The smallest level within 5 % of the best throughput, among the levels that are not flagged,
    if there are any.
    """

    at: float
    throughput: float


class Capacity(msgspec.Struct, frozen=True, kw_only=True):
    """What one device needs at the knee: CPU cores of its server, bytes/s to and from the clients.
    `at` is the level that they were measured at; None where they were not measured.
    """

    at: float
    server_cores: float | None = None
    network_bytes_per_s: float | None = None


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One curve of a scan: its key (device, backend, via ...), levels, fits and findings.

    `flagged` are the levels whose measurement is known to be wrong, `recommended_note` says that
    they were left out of the recommendation, or that there are no others; `fitted_note` says it of
    the curve. `overlaps_best` are the levels whose 95 % interval overlaps that of the highest
    throughput: where there are any, no level is proven best. `no_plan` says why there is no number
    of jobs for a device although there is a knee. `unit` is that of the throughput.
    """

    key: dict[str, str]
    batch: BatchCurve | None = None
    usl: Usl | None = None
    knee: Knee | None = None
    jobs_per_device: int | None = None
    no_plan: str = ""
    clients_per_job: int = 1
    capacity: Capacity | None = None
    recommended: Recommended | None = None
    step: StepChange | None = None
    findings: tuple[Finding, ...] = ()
    axis: Literal["batch_size", "concurrency", "processes"] = "batch_size"
    levels: tuple[float, ...] = ()
    throughput: tuple[float, ...] = ()
    unit: str = RATE
    throughput_sem: tuple[float | None, ...] = ()
    latency_ms: tuple[float | None, ...] = ()
    flagged: tuple[float, ...] = ()
    recommended_note: str = ""
    fitted_note: str = ""
    overlaps_best: tuple[float, ...] = ()

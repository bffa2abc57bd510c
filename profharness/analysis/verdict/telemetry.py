"""What holds a device back, from telemetry alone: no trace, so no gaps, no kernels, and lower
confidence (docs/metrics.md#telemetry-verdict).

The driver's busy share splits time into idle and busy; what the busy part does is read from fill,
memory and tensor figures where the part has them. Thresholds are those of the traced verdict, where
telemetry has the same figure.
"""

from __future__ import annotations

from collections.abc import Mapping

from profharness.analysis.power.clock_caps import clock_caps
from profharness.analysis.records import Figure
from profharness.analysis.verdict.window import Judgement, judge
from profharness.analysis.verdict.wording import verdict_of, with_remark
from profharness.units import format_share

FULL = 0.6  # of a peak, from which it is called the limit
UNDERFILLED_SMS = 0.5  # of the SMs, while busy
# One workgroup of 256 threads on every second compute unit: 4 of 32 waves on half of them.
UNDERFILLED_WAVES = 1 / 16
CONFIDENCE = (
    "from telemetry alone, so with lower confidence: it sees shares of sampled time, "
    "no kernel and no gap"
)


def telemetry_verdict(figures: Mapping[str, Figure]) -> Judgement:
    """The verdict from telemetry alone, or what it would take. Without a device the CPU is judged.

    Idle time is `idle-unexplained`: no gap and no host call was recorded.
    """
    busy = _busy(figures)
    if busy is None:
        by_cpu = judge(None, figures, ())
        return (
            by_cpu
            if by_cpu.verdict is None
            else Judgement(with_remark(by_cpu.verdict, CONFIDENCE), "", None)
        )
    idle = max(1 - busy, 0.0)
    if idle >= 0.5:
        evidence = f"the device is idle {format_share(idle)} of the time{_host(figures)}"
        said = verdict_of("idle-unexplained", idle, evidence, 1 / busy if busy else None)
    else:
        kind, evidence = _while_busy(figures, busy)
        if idle > 0.05:
            evidence += f"; idle {format_share(idle)}{_host(figures)}"
        said = verdict_of(kind, busy, "; ".join((evidence, *clock_caps(figures))))
    return Judgement(with_remark(said, CONFIDENCE), "", None)


def units_counted(figures: Mapping[str, Figure]) -> bool:
    """Whether counters of the hardware say how a device's compute units worked, so that a run
    without any trace of it can be judged by its telemetry.
    """
    return _busy(figures) is not None and _value(figures, "cu_active") is not None


def _busy(figures: Mapping[str, Figure]) -> float | None:
    """The mean between samples where the driver accumulates it, else the mean of its momentary
    figures.
    """
    for name in ("gpu_activity_mean", "gpu_percent"):
        percent = _value(figures, name)
        if percent is not None:
            return min(percent / 100, 1.0)
    return None


def _while_busy(figures: Mapping[str, Figure], busy: float) -> tuple[str, str]:
    """The kind of the busy time, and its evidence."""
    busy_for = f"busy {format_share(busy)} of the time"
    dram = _value(figures, "dram_activity")
    if (counted := _counted(figures, busy)) is not None:
        return counted[0], f"{busy_for}{counted[1]}"
    if dram is not None and dram >= FULL:
        return "bandwidth", f"{busy_for}, {format_share(dram)} of the peak memory bandwidth"
    sms = _value(figures, "sm_activity")
    if sms is not None and sms / busy < UNDERFILLED_SMS:
        return (
            "underfilled",
            f"{busy_for}, but only {format_share(sms / busy)} of the SMs work meanwhile",
        )
    waves = None if "cu_active" in figures else _waves(figures)
    if waves is not None and waves / busy < UNDERFILLED_WAVES:
        return (
            "underfilled",
            (
                f"{busy_for}, but it holds {format_share(waves / busy)} of the waves that it could "
                "meanwhile"
            ),
        )
    memory = next(
        (
            share
            for name in ("memory_activity_mean", "memory_activity")
            if (share := _value(figures, name)) is not None
        ),
        None,
    )
    if dram is None and memory is not None and memory >= FULL:
        return "bandwidth", f"{busy_for}, the memory controller {format_share(memory)}"
    measured = [
        f"{words} {format_share(share)}"
        for words, share in (
            ("SMs", sms),
            ("compute units", _value(figures, "cu_active")),
            ("their occupancy", _value(figures, "cu_occupancy")),
            ("matrix cores", _value(figures, "matrix_busy")),
            ("waves", waves),
            ("memory", dram if dram is not None else memory),
        )
        if share is not None
    ]
    return "undetermined", ", ".join(
        (busy_for, *measured)
    ) + "; whether by compute or by bandwidth is not measured"


def _counted(figures: Mapping[str, Figure], busy: float) -> tuple[str, str] | None:
    """What counters of the hardware decide, before the driver's own figures: the kind, and the
    evidence behind the busy time. None where they decide nothing.
    """
    for name, words in (
        ("tensor_activity", "tensor cores"),
        ("matrix_busy", "matrix cores"),
        ("valu_busy", "vector units"),
    ):
        share = _value(figures, name)
        if share is not None and share >= FULL:
            return "compute", f", {words} {format_share(share)}"
    active, full = _value(figures, "cu_active"), _value(figures, "cu_occupancy")
    if active is not None and active / busy < UNDERFILLED_SMS:
        waves = "" if full is None else f", which hold {format_share(full / busy)} of their waves"
        return (
            "underfilled",
            f", but only {format_share(active / busy)} of the compute units work meanwhile{waves}",
        )
    return None


def _waves(figures: Mapping[str, Figure]) -> float | None:
    """None too where the compute driver knows no process on a busy device: what keeps it busy is
    then not counted.
    """
    return None if _value(figures, "gpu_processes") == 0 else _value(figures, "wave_fill")


def _host(figures: Mapping[str, Figure]) -> str:
    used, allowed = _value(figures, "cores_used"), _value(figures, "cores_allowed")
    if used is None:
        return ""
    return f" while the host ran on {used:.1f}{'' if allowed is None else f' of {allowed:g}'} cores"


def _value(figures: Mapping[str, Figure], name: str) -> float | None:
    figure = figures.get(name)
    return None if figure is None or figure.value is None else float(figure.value)

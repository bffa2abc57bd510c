"""The criteria of saturation beside the plateau: the device is busy and full, and a limit of its
own is reached (docs/certificate.md#saturation).
"""

from __future__ import annotations

from profharness.analysis.certificate.criterion import Reading, at_least, first_known
from profharness.analysis.certificate.subject import Subject
from profharness.analysis.verdict.above_peak import impossible
from profharness.stats.estimate import Figure
from profharness.units import format_share, format_share_range

SLOWDOWN = 2.0
"""By how much a profiler of unknown cost may have stretched the time between kernels."""
HALF = 0.5
POWER_LIMIT = 0.95
"""The share of the power between idle and the cap from which the cap is the limit."""
_CEILINGS = ("roofline_share", "flops_of_ceiling", "bandwidth_share")
_ELSEWHERE = frozenset({"communication", "copy", "underfilled", "inside-kernel"})
_DIFFER = "kernels-differ"


def busy(subject: Subject, threshold: float) -> Reading:
    """The share of time in which the device worked; of a CPU the share of the allowed cores."""
    if subject.on_cpu:
        return _cores(subject, threshold)
    bare = first_known(subject.figures, ("busy_bare",))
    if bare is not None and any(item.id == _DIFFER for item in subject.findings):
        return Reading("not judged", "the traced pass ran other kernels than the bare pass")
    if bare is not None:
        return _share(bare, threshold, "a kernel ran {} of a bare trial's time")
    traced = first_known(subject.figures, ("busy",))
    return _sampled(subject, threshold) if traced is None else _traced(traced, threshold)


def _sampled(subject: Subject, threshold: float) -> Reading:
    """By the driver's own figure, which says how long anything ran."""
    sampled = first_known(subject.figures, ("gpu_activity_mean", "gpu_percent"))
    if sampled is None:
        return Reading("not judged", "nothing says how long the device worked")
    name, figure = sampled
    value = min(float(figure.value or 0.0) / 100, 1.0)
    as_share = Figure(value=value, unit="share", source=figure.source)
    return _share((name, as_share), threshold, "by its driver the device worked {} of the time")


def _traced(traced: tuple[str, Figure], threshold: float) -> Reading:
    """By a traced pass alone: the profiler makes the time between kernels longer."""
    found = _share(traced, threshold, "in the traced pass a kernel ran {} of the time")
    if found.state != "not met" or found.value is None or found.value * SLOWDOWN < threshold:
        return found
    text = f"{found.text}, which a profiler of unknown cost lowers"
    needs = "the cost of the profiler: --bare, or a scan, which has a bare pass"
    return Reading("not judged", text, found.value, source=found.source, needs=needs)


def _cores(subject: Subject, threshold: float) -> Reading:
    used, allowed = subject.figures.get("cores_used"), subject.value("cores_allowed")
    if used is None or used.value is None or not allowed:
        return Reading("not judged", "the cores that the work ran on were not sampled")
    value = float(used.value) / allowed
    return Reading(
        "met" if value >= threshold else "not met",
        f"the work ran on {float(used.value):.1f} of {allowed:g} cores",
        value,
        source=used.source,
    )


def fill(subject: Subject, threshold: float) -> Reading:
    """The share of the compute units that had work while kernels ran."""
    if subject.on_cpu:
        return Reading("not applicable", "a CPU has no compute units that a kernel could leave")
    known = first_known(subject.figures, ("fill_busy",))
    if known is not None:
        return _share(known, threshold, "while kernels ran, {} of the compute units had work")
    counted = first_known(subject.figures, ("cu_active", "sm_activity"))
    if counted is not None:
        return _share(counted, threshold, "{} of the compute units had work, idle time included")
    waves = first_known(subject.figures, ("wave_fill",))
    if waves is None:
        return Reading("not judged", "nothing says how many compute units had work")
    found = _share(waves, threshold, "{} of all waves that the device can hold were in flight")
    if found.state == "met":
        return found
    text = f"{found.text}, with which it may be full or not"
    return Reading("not judged", text, found.value, source=found.source)


def limiter(subject: Subject, threshold: float) -> Reading:
    """The share of a ceiling that was reached, or the proof of another limit of the device."""
    reached = _of_ceilings(subject)
    if reached is not None:
        name, figure = reached
        found = _share((name, figure), threshold, _WORDS[name])
        if found.state == "met":
            return found
    proof = _at_ceilings(subject) or _at_power_limit(subject)
    if proof is not None:
        return proof
    verdict = subject.verdict
    value = None if reached is None else reached[1].least
    source = "" if reached is None else reached[1].source
    if verdict is not None and (verdict.kind in _ELSEWHERE or verdict.idle):
        text = f"no ceiling is the limit; the verdict is {verdict.kind}: {verdict.evidence}"
        return Reading("not met", text.rstrip(": "), value, source=source)
    if value is not None:
        text = f"{format_share(value)} of a ceiling is known to be reached, and may be more"
        return Reading("not judged", text, value, source=source)
    beyond = [name for name in _CEILINGS if impossible(name, subject.figures.get(name))]
    if beyond:
        share = format_share(subject.figures[beyond[0]].least or 0.0)
        text = f"{share} of a ceiling cannot be: that ceiling is not believed"
        return Reading("not judged", text, needs="`profharness calibrate` on a quiet node")
    return Reading("not judged", "neither a share of a ceiling nor another limit is known")


_WORDS = {
    "roofline_share": "the device did {} of the work per second that its roofline allows",
    "flops_of_ceiling": "the device did {} of the FLOPs per second of its ceiling",
    "bandwidth_share": "the device moved {} of the bytes per second of its ceiling",
}


def _of_ceilings(subject: Subject) -> tuple[str, Figure] | None:
    """The ceiling of which the largest share was reached; none by a share that cannot be: then the
    ceiling, or what is set against it, is wrong.
    """
    known = [
        (name, figure)
        for name in _CEILINGS
        if (figure := subject.figures.get(name)) is not None
        and figure.is_known
        and not impossible(name, figure)
    ]
    return max(known, key=lambda one: one[1].least or 0.0, default=None)


def _at_ceilings(subject: Subject) -> Reading | None:
    """Kernels that are each at a ceiling, for half of the window and more."""
    parts = [subject.least(name) for name in ("compute_bound", "bandwidth_bound")]
    share = sum(part for part in parts if part is not None)
    if share < HALF:
        return None
    text = f"kernels at a ceiling of the device fill it {format_share(share)} of the time"
    figure = subject.figures["compute_bound" if parts[0] else "bandwidth_bound"]
    return Reading("met", text, share, source=figure.source)


def _at_power_limit(subject: Subject) -> Reading | None:
    figure = subject.figures.get("power_saturation")
    if figure is None or figure.value is None or float(figure.value) < POWER_LIMIT:
        return None
    share = float(figure.value)
    text = f"the device draws {format_share(share)} of the power that its cap allows above idle"
    return Reading("met", text, share, source=figure.source)


def _share(named: tuple[str, Figure], threshold: float, words: str) -> Reading:
    """A figure that is a share, against the threshold by its interval."""
    name, figure = named
    value = None if figure.value is None else float(figure.value)
    low = None if figure.low is None else float(figure.low)
    high = None if figure.high is None else float(figure.high)
    state = at_least(threshold, value, low, high)
    shown = _range(low, high) if value is None else format_share(value)
    text = words.format(shown)
    if state == "not judged":
        reach = "the range of it" if value is None else "its interval"
        text += f"; {reach} reaches over the threshold"
    source = f"{name}: {figure.source}" if figure.source else name
    return Reading(state, text, value, low, high, source)


def _range(low: float | None, high: float | None) -> str:
    """A share of which only ends are known."""
    if low is not None and high is not None:
        return format_share_range(low, high)
    return f"at most {format_share(high or 0)}" if low is None else f"at least {format_share(low)}"

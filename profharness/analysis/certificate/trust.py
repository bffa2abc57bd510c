"""The criteria of trust, and the conditions under which the figures were measured
(docs/certificate.md#trust).
"""

from __future__ import annotations

from profharness.analysis.certificate.criterion import Reading
from profharness.analysis.certificate.subject import Subject
from profharness.analysis.run.checks import NOBODY
from profharness.units import format_share

NAMED = 3
_CPU_SHARED = "cpu-pressure"


def whole(subject: Subject, _threshold: float) -> Reading:
    """Whether the run reached its end and measured the point."""
    why = _why_not_whole(subject)
    if why:
        return Reading("not met", why)
    if subject.point is None:
        return Reading("met", "the command ended with exit status 0")
    return Reading("met", "the run is done, and the point was measured")


def _why_not_whole(subject: Subject) -> str:
    manifest, point = subject.manifest, subject.point
    if manifest.state != "done":
        return f"the run is {manifest.state}, not done"
    if manifest.exit_status:
        return f"the run ended with exit status {manifest.exit_status}"
    if point is None:
        measured_none = bool(subject.summary.points) or subject.is_scan
        return "no point of the run was measured" if measured_none else ""
    if point.state != "ok":
        return f"the point's state is {point.state}"
    return "" if point.kept else "the point does not do what --require asks for"


def findings(subject: Subject, _threshold: float) -> Reading:
    """Findings of severity error on the point, or on the run as a whole."""
    errors = [item for item in subject.findings if item.severity == "error"]
    if not errors:
        return Reading("met", "no finding says that the figures are wrong", 0.0)
    kinds = list(dict.fromkeys(item.id for item in errors))
    more = f" and {len(kinds) - NAMED} more" if len(kinds) > NAMED else ""
    return Reading("not met", f"{', '.join(kinds[:NAMED])}{more}", float(len(errors)))


def files(subject: Subject, _threshold: float) -> Reading:
    """Problems of severity error that readers met in the run's files."""
    errors = [item for item in subject.summary.problems if item.severity == "error"]
    if not errors:
        return Reading("met", "every file of the run could be read", 0.0)
    sources = list(dict.fromkeys(item.source for item in errors))
    more = f" and {len(sources) - NAMED} more" if len(sources) > NAMED else ""
    count = float(sum(item.count for item in errors))
    return Reading("not met", f"not all could be read of {', '.join(sources[:NAMED])}{more}", count)


def versions(subject: Subject, _threshold: float) -> Reading:
    """Whether the device, its driver and the software are recorded."""
    nodes = subject.manifest.nodes
    if not nodes:
        return Reading("not judged", "the run does not say what it ran on")
    missing = []
    accelerators = [device for node in nodes for device in node.devices if device.kind != "cpu"]
    if subject.on_cpu:
        if not all(node.cpu_model for node in nodes):
            missing.append("the model of the CPU")
    elif not accelerators or not all(device.name for device in accelerators):
        missing.append("the device's name")
    elif not all(device.driver for device in accelerators):
        missing.append("the driver's version")
    if not any(node.versions for node in nodes):
        missing.append("the versions of the software")
    if missing:
        return Reading("not judged", f"the run does not record {' and '.join(missing)}")
    return Reading("met", "device, driver and software are recorded")


def clocks(subject: Subject, threshold: float) -> Reading:
    """How long temperature or a signal from outside held the device's clock down. Its power limit
    may: a saturated device often runs at it.
    """
    if subject.on_cpu:
        return Reading("not applicable", "a CPU's clock is not judged")
    held = {
        words: value
        for name, words in (
            ("throttle_thermal", "temperature"),
            ("throttle_external", "a signal from outside"),
        )
        if (value := subject.condition(name)) is not None
    }
    if not held:
        return Reading("not judged", "nothing says what held the device's clock down")
    words = max(held, key=lambda one: held[one])
    share = held[words]
    text = f"{words} held the device's clock down {format_share(share)} of the time"
    return Reading("met" if share <= threshold else "not met", text, share)


def cap(subject: Subject, _threshold: float) -> Reading:
    """Whether the power cap is known and stayed the same."""
    if subject.on_cpu:
        return Reading("not applicable", "a CPU's power cap is not judged")
    rows = [row for row in subject.summary.telemetry if row.metric == "power_limit"]
    if not rows:
        return Reading("not judged", "nothing says which power cap was in force")
    moved = [row for row in rows if row.high > row.low]
    if moved:
        first = moved[0]
        text = f"the power cap changed during the run, from {first.low:g} W to {first.high:g} W"
        return Reading("not met", text)
    watts = " and ".join(dict.fromkeys(f"{row.high:g} W" for row in rows))
    return Reading("met", f"the power cap was {watts} all the time")


def others(subject: Subject, _threshold: float) -> Reading:
    """Whether anybody else used the device."""
    if subject.on_cpu:
        pressed = [
            item for item in subject.findings if item.id == _CPU_SHARED and item.advice != NOBODY
        ]
        if pressed:
            return Reading("not met", pressed[0].message)
        if subject.condition("cpu_tree_wait") is None:
            return Reading("not judged", "nothing says whether the work waited for cores")
        return Reading("met", "the work did not have to wait for cores that others held")
    value = subject.condition("gpu_processes_other")
    if value is None:
        return Reading("not judged", "nothing says who else used the device")
    if value > 0:
        text = f"other processes used the device meanwhile: {value:.3g} on average"
        return Reading("not met", text, value)
    return Reading("met", "no other process used the device", 0.0)

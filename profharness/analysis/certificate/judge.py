"""From the criteria to the outcome, its sentence, and the conditions that the run recorded
(docs/certificate.md#outcome).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.certificate.criteria import CRITERIA, VERSION
from profharness.analysis.certificate.records import Fact, Judged, Judgement, Outcome, State
from profharness.analysis.certificate.subject import Subject
from profharness.units import format_number


def judge(subject: Subject) -> Judgement:
    """All criteria of the subject, and what follows from them."""
    judged = tuple(criterion.judge(subject) for criterion in CRITERIA)
    outcome = outcome_of(judged)
    point = "" if subject.point is None else subject.point.point
    device = _device(subject)
    return Judgement(
        criteria=VERSION,
        outcome=outcome,
        answer=_answer(outcome, judged, subject.name, device),
        point=point,
        device=device,
        judged=judged,
        facts=tuple(Fact(name, text) for name, text in _facts(subject) if text),
    )


def outcome_of(judged: Sequence[Judged]) -> Outcome:
    """What cannot be trusted proves nothing, whatever its figures are. Then one criterion of
    saturation that is not met decides, then one that could not be judged. A condition that could
    not be judged is named, and decides nothing.
    """
    saturation = [one for one in judged if one.group == "saturation"]
    if any(one.state == "not met" for one in judged if one.group != "saturation"):
        return "not trusted"
    if any(one.state == "not judged" for one in judged if one.group == "trust"):
        return "undecided"
    if any(one.state == "not met" for one in saturation):
        return "not saturated"
    if any(one.state == "not judged" for one in saturation):
        return "undecided"
    return "saturated"


def ids(judged: Sequence[Judged], state: State) -> tuple[str, ...]:
    """The criteria in this state."""
    return tuple(one.id for one in judged if one.state == state)


def _answer(outcome: Outcome, judged: Sequence[Judged], name: str, device: str) -> str:
    what = f"{device or 'the device'} at {name}" if name else device or "the device"
    open_ones = ids(judged, "not judged")
    certified = outcome != "not trusted"
    names = ", ".join(
        one.id
        for one in judged
        if one.state == "not met" and (one.group == "saturation") == certified
    )
    opening = {
        "saturated": f"{what} is saturated: every criterion of saturation that applies is met.",
        "not saturated": f"{what} is not saturated.",
        "not trusted": f"Nothing is certified of {what}.",
        "undecided": f"Whether {what} is saturated is not decided.",
    }[outcome]
    failed = f" Not met: {names}." if names else ""
    missing = f" Not judged: {', '.join(open_ones)}." if open_ones else ""
    inapplicable = ids(judged, "not applicable")
    apart = f" Not applicable: {', '.join(inapplicable)}." if inapplicable else ""
    said = f"{opening}{failed}{missing}{apart}"
    return said[:1].upper() + said[1:]


def _device(subject: Subject) -> str:
    nodes = subject.manifest.nodes
    names = (
        [node.cpu_model for node in nodes]
        if subject.on_cpu
        else [device.name for node in nodes for device in node.devices if device.kind != "cpu"]
    )
    return " and ".join(name for name in dict.fromkeys(names) if name)


def _facts(subject: Subject) -> Iterator[tuple[str, str]]:
    """What a reader needs to repeat the measurement, in order."""
    manifest, summary = subject.manifest, subject.summary
    yield "profharness", manifest.profharness
    drivers = dict.fromkeys(
        device.driver for node in manifest.nodes for device in node.devices if device.driver
    )
    yield "driver", ", ".join(drivers)
    yield "kernel", ", ".join(dict.fromkeys(node.kernel for node in manifest.nodes if node.kernel))
    versions = {
        f"{name} {version}" for node in manifest.nodes for name, version in node.versions.items()
    }
    yield "software", ", ".join(sorted(versions))
    if manifest.git is not None:
        changed = " with changes that were not committed" if manifest.git.dirty else ""
        yield "commit", f"{manifest.git.commit}{changed}"
    yield "container", manifest.container
    for metric, name in (
        ("clock_gpu", "clock of the device"),
        ("power_limit", "power cap"),
        ("power_w", "power drawn"),
        ("gpu_processes_other", "other processes on the device"),
    ):
        rows = [row for row in summary.telemetry if row.metric == metric]
        if rows and not subject.on_cpu:
            low, high = min(row.low for row in rows), max(row.high for row in rows)
            ends = dict.fromkeys((_number(low), _number(high)))
            yield name, f"{' to '.join(ends)} {rows[0].unit} over the run"
    overheads = [
        f"{layer} {100 * estimate.value:.1f} %"
        for row in summary.passes
        for layer, estimate in row.overhead.items()
        if estimate.value is not None
    ]
    yield "cost of profiling", ", ".join(overheads)


def _number(value: float) -> str:
    return format_number(value, 0 if value == round(value) else 1)

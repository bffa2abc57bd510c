"""Advice for the device that was used: on NVIDIA's no tool of AMD records anything.

What figures and verdicts need is worked out for every device alike and stands so in JSON; what
people read names the tools that they have, by the two wordings of each way to record something
(`profharness/findings/ways.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from profharness.analysis.records import Figure, PointSummary, StepSummary, Summary
from profharness.analysis.verdict.records import Verdict
from profharness.findings import Finding
from profharness.findings.ways import WAYS

_NVIDIA: Final = re.compile(r"nvidia|tesla|geforce|quadro", re.IGNORECASE)
_ON_NVIDIA: Final = {way.words: way.on_nvidia for way in WAYS}
# the longest words first: a way may begin as another one does
_WORDS: Final = re.compile("|".join(map(re.escape, sorted(_ON_NVIDIA, key=len, reverse=True))))


def on_nvidia(summary: Summary) -> bool:
    """Whether all devices were NVIDIA's, by what the run or its files call them; False where nobody
    wrote down which devices they were.
    """
    if summary.run is not None and summary.run.device:
        return _NVIDIA.search(summary.run.device) is not None
    return bool(summary.device_names) and all(map(_NVIDIA.search, summary.device_names))


def for_device(advice: str, summary: Summary) -> str:
    """The advice without tools that do not know the device of the summary."""
    return _for_nvidia(advice) if on_nvidia(summary) else advice


def for_device_named(text: str, device: str) -> str:
    """The text without tools that do not know a device of this name."""
    return _for_nvidia(text) if _NVIDIA.search(device) else text


def as_read(summary: Summary) -> Summary:
    """The summary as people read it: what its verdicts, figures and findings say and need, without
    tools that do not know its device. The same object where there is nothing to replace.
    """
    if not on_nvidia(summary):
        return summary
    return msgspec.structs.replace(
        summary,
        verdict=_verdict(summary.verdict),
        verdict_needs=_for_nvidia(summary.verdict_needs),
        metrics=_figures(summary.metrics),
        findings=tuple(map(_finding, summary.findings)),
        points=tuple(map(_point, summary.points)),
        steps=tuple(map(_step, summary.steps)),
    )


def _for_nvidia(text: str) -> str:
    return _WORDS.sub(lambda match: _ON_NVIDIA[match[0]], text)


def _verdict(verdict: Verdict | None) -> Verdict | None:
    if verdict is None:
        return None
    return msgspec.structs.replace(
        verdict, text=_for_nvidia(verdict.text), evidence=_for_nvidia(verdict.evidence)
    )


def _figures(figures: Mapping[str, Figure]) -> dict[str, Figure]:
    return {
        name: msgspec.structs.replace(figure, needs=_for_nvidia(figure.needs))
        if figure.needs
        else figure
        for name, figure in figures.items()
    }


def _finding(finding: Finding) -> Finding:
    return msgspec.structs.replace(
        finding, message=_for_nvidia(finding.message), advice=_for_nvidia(finding.advice)
    )


def _point(point: PointSummary) -> PointSummary:
    return msgspec.structs.replace(
        point,
        verdict=_verdict(point.verdict),
        verdict_needs=_for_nvidia(point.verdict_needs),
        metrics=_figures(point.metrics),
    )


def _step(step: StepSummary) -> StepSummary:
    return msgspec.structs.replace(step, metrics=_figures(step.metrics))

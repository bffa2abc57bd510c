"""What a criterion is, and how a value is held against its threshold by its interval."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from profharness.analysis.certificate.records import Group, Judged, State
from profharness.analysis.certificate.subject import Subject
from profharness.stats.estimate import Figure
from profharness.units import finite


@dataclass(frozen=True)
class Reading:
    """What was found for one criterion: its state with one sentence, and the value behind it."""

    state: State
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    source: str = ""
    needs: str = ""


@dataclass(frozen=True)
class Criterion:
    """One row of the table of criteria (docs/certificate.md#criteria).

    `rule` says in words when it is met, and `needs` what a run has to hold for it to be judged. A
    criterion without a number has no `threshold`.
    """

    id: str
    group: Group
    rule: str
    needs: str
    read: Callable[[Subject, float], Reading]
    threshold: float | None = None
    unit: str = ""

    def judge(self, subject: Subject) -> Judged:
        """The criterion of this subject."""
        found = self.read(subject, 0.0 if self.threshold is None else self.threshold)
        return Judged(
            id=self.id,
            group=self.group,
            state=found.state,
            text=found.text,
            value=finite(found.value),
            low=finite(found.low),
            high=finite(found.high),
            threshold=self.threshold,
            unit=self.unit,
            source=found.source,
            needs=found.needs or (self.needs if found.state == "not judged" else ""),
        )


def at_least(threshold: float, value: float | None, low: float | None, high: float | None) -> State:
    """Whether a value is at least the threshold: met where its whole interval is, not met where
    none of it is, and not judged in between. A value without an interval stands for itself, and
    without both nothing is judged.
    """
    if value is not None and low is None and high is None:
        return "met" if value >= threshold else "not met"
    if low is not None and low >= threshold:
        return "met"
    if high is not None and high < threshold:
        return "not met"
    return "not judged"


def first_known(figures: Mapping[str, Figure], names: tuple[str, ...]) -> tuple[str, Figure] | None:
    """The first of these figures that has a value or known ends, with its name."""
    for name in names:
        figure = figures.get(name)
        if figure is not None and figure.is_known:
            return name, figure
    return None

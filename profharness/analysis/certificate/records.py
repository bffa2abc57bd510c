"""What a certificate says, as typed records (docs/certificate.md). Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

State = Literal["met", "not met", "not judged", "not applicable"]
Group = Literal["trust", "saturation", "conditions"]
Outcome = Literal["saturated", "not saturated", "not trusted", "undecided"]


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """One criterion of one run.

    `value` is what was held against `threshold`, both in `unit`, with its 95 % interval where there
    is one; None where nothing was measured. `text` says it in a sentence, `source` where the value
    comes from, and `needs` what would judge the criterion where it was not judged.
    """

    id: str
    group: Group
    state: State
    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    threshold: float | None = None
    unit: str = ""
    source: str = ""
    needs: str = ""


class Fact(msgspec.Struct, frozen=True):
    """One condition that the run recorded, as text: a version, a clock, a power cap."""

    name: str
    text: str


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """All criteria of one point of a run (`point` is empty for a command without points), and what
    follows from them. `criteria` is the version of the criteria, `answer` the sentence that the
    page begins with.
    """

    criteria: int
    outcome: Outcome
    answer: str
    point: str
    device: str
    judged: tuple[Judged, ...]
    facts: tuple[Fact, ...] = ()

    def named(self, criterion: str) -> Judged:
        """The criterion of that id. Raises KeyError for an unknown one."""
        for judged in self.judged:
            if judged.id == criterion:
                return judged
        raise KeyError(criterion)


Why = Literal["changed", "missing", "added", "unreadable", "another result"]


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as it was certified: a file, by its path in the run, or a criterion."""

    name: str
    why: Why
    text: str = ""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What the check of a certificate came to. `run` and `outcome` are those of the certificate,
    `scrubbed` the files whose secrets were removed since. `recomputed` tells whether the criteria
    were judged again: of a run with other files they are not.
    """

    schema: int = 1
    run: str
    point: str
    outcome: Outcome
    holds: bool
    recomputed: bool
    files: int
    faults: tuple[Fault, ...] = ()
    scrubbed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

"""What one try of one fault did: every row of the table of faults is a sum of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """One try of one fault.

    A module of this folder has `attempt(folder: Path, random: random.Random) -> Outcome`, which
    makes one try inside of the empty folder `folder`, with moments and choices from `random`.
    """

    hit: bool
    """The fault struck a live victim; a try that came too late counts for nothing."""

    lost_points: int = 0
    """Points that were finished before the fault and are not there after it."""

    differing_figures: int = 0
    """Figures that differ from the truth, such as SQLite's own recovery of the same file."""

    faults: tuple[str, ...] = ()
    """Everything else that must not be: a left process, a changed exit status; a sentence each."""

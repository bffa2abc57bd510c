"""`--trace-ranks 0,3` and `0-3,8`: which ranks of a command the layers stand around. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profharness.errors import UsageError
from profharness.options.declared import TextForm

_PART = r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?"
_MOST = 1 << 20  # ranks; more is a slip of the keyboard


def parse(value: object, named: str) -> object:
    """A text as its ranks in order, each once; all else as it is. Raises UsageError."""
    if not isinstance(value, str):
        return value
    ranks: set[int] = set()
    for part in value.split(","):
        match = re.fullmatch(_PART, part)
        first = int(match[1]) if match else 0
        last = int(match[2]) if match and match[2] else first
        if match is None or last < first or last > _MOST:
            raise UsageError(
                f"{named}: {part.strip()!r} is no rank and no range of ranks",
                "write ranks and ranges from small to large, such as 0,3 or 0-3,8",
            )
        ranks.update(range(first, last + 1))
    return tuple(sorted(ranks))


FORM = TextForm(parse, f"^{_PART}(,{_PART})*$")


def check(traced: Sequence[int], world: int) -> None:
    """Raises UsageError for a rank that is not among `world` ranks."""
    absent = [rank for rank in traced if not 0 <= rank < world]
    if not absent:
        return
    if world == 1:
        raise UsageError(
            f"--trace-ranks: there is no rank {absent[0]}, since the command runs as one, rank 0",
            "start several with --ranks N, or start profharness under srun, mpirun or torchrun",
        )
    raise UsageError(
        f"--trace-ranks: there is no rank {absent[0]} among {world} ranks",
        f"name ranks from 0 to {world - 1}",
    )


def shown(traced: Sequence[int]) -> str:
    """`0-3, 8`: ranks in order, with runs of three and more as ranges."""
    runs: list[list[int]] = []
    for rank in traced:
        if runs and runs[-1][-1] == rank - 1:
            runs[-1].append(rank)
        else:
            runs.append([rank])
    return ", ".join(
        f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )

from __future__ import annotations

import pytest

from profharness.analysis.records import TRACED_RANKS
from profharness.analysis.run.passes import captured, run_info
from profharness.trace.model import FIRST_STEP, STEPS, Source, Strings, Trace
from tests.analysis.run.run_scene import manifest

CAPTURED = ((FIRST_STEP, "10"), (STEPS, "20"))


def traced(*details: tuple[tuple[str, str], ...]) -> Trace:
    sources = tuple(
        Source(path=f"{number}.json", format="kineto", pass_name="torch", details=one)
        for number, one in enumerate(details)
    )
    return Trace((*sources, Source(path="steps", format="steps", pass_name="torch")), Strings())


@pytest.mark.parametrize(
    ("details", "found"),
    [
        ((CAPTURED,), (10, 20)),
        ((CAPTURED, CAPTURED), (10, 20)),
        ((), (None, None)),
        (((("a", "b"),),), (None, None)),
        ((CAPTURED, ((FIRST_STEP, "10"), (STEPS, "19"))), (None, None)),
    ],
)
def test_the_steps_that_were_captured_are_those_that_all_files_agree_on(
    details: tuple[tuple[tuple[str, str], ...], ...], found: tuple[int | None, int | None]
) -> None:
    assert captured(traced(*details), "torch") == found
    assert captured(traced(*details), "bare") == (None, None)


@pytest.mark.parametrize(
    ("ranks", "chosen", "told"), [(3, (0, 2), "0, 2"), (2, (0, 1), None), (1, (0,), None)]
)
def test_traced_ranks_are_named_unless_all_were(
    ranks: int, chosen: tuple[int, ...], told: str | None
) -> None:
    made = manifest(kind="command", scan=None, ranks=ranks, traced_ranks=chosen)
    assert run_info(made, "x").asked.get(TRACED_RANKS) == told

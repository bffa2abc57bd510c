"""Which entry a return belongs to, in logs whose calls are cut off or nested without end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.readers.logs.amd_log import _DEEPEST, _Thread
from tests.steps import calls_of

STEPS = st.lists(st.tuples(st.booleans(), st.sampled_from("abc")), max_size=80)


@given(STEPS, st.integers(0, _DEEPEST))
def test_a_return_ends_the_last_entry_of_its_call(
    steps: list[tuple[bool, str]], depth: int
) -> None:
    thread = _Thread()
    naive = [(-at, "x") for at in range(depth)]
    for entry in naive:
        thread.enter(*entry)
    for at, (enters, call) in enumerate(steps):
        if enters:
            assert thread.enter(at, call) == (len(naive) == _DEEPEST)
            naive = [*naive, (at, call)][-_DEEPEST:]
            continue
        places = [place for place, (_, name) in enumerate(naive) if name == call]
        expected = (naive[places[-1]][0], len(naive) - places[-1] - 1) if places else None
        assert thread.leave(call) == expected
        naive = naive[: places[-1]] if places else naive
    assert thread.entries == naive


def test_returns_without_entry_are_not_searched_for() -> None:
    thread = _Thread()
    for at in range(_DEEPEST):
        thread.enter(at, f"call {at}")
    assert calls_of(lambda: [thread.leave("never") for _ in range(1000)]) < 5_000

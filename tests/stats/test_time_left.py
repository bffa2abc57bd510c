"""How long what is left takes, against times that were made up."""

from __future__ import annotations

import pytest

from profharness.stats.time_left import Part, TimeLeft, Took, time_left


def took(pass_name: str, point: str, seconds: float) -> Took:
    return Took(Part(pass_name, point), seconds)


def test_nothing_is_known_before_the_first_point_and_nothing_left_after_the_last() -> None:
    assert time_left((), [Part("bare", "a")]).seconds is None
    assert time_left([took("bare", "a", 2.0)], ()) == TimeLeft(0.0, "nothing is left to measure")


def test_a_point_takes_as_long_as_it_took_in_its_pass_then_elsewhere_then_as_the_mean() -> None:
    done = [
        took("bare", "a", 1.0),
        took("bare", "b", 3.0),
        took("bare", "b", 5.0),
        took("torch", "a", 10.0),
    ]
    assert time_left(done, [Part("bare", "b")]).seconds == pytest.approx(4.0)
    assert time_left(done, [Part("torch", "b")]).seconds == pytest.approx(4.0)
    assert time_left(done, [Part("torch", "c")]).seconds == pytest.approx(10.0)
    assert time_left(done, [Part("other", "c")]).seconds == pytest.approx(19 / 4)
    together = [Part("bare", "b"), Part("torch", "c"), Part("other", "c")]
    assert time_left(done, together).seconds == pytest.approx(4.0 + 10.0 + 19 / 4)


@pytest.mark.parametrize(("begun", "left"), [(0.0, 4.0), (1.5, 2.5), (2.0, 2.0), (60.0, 2.0)])
def test_the_point_that_is_measured_uses_up_its_own_time_alone(begun: float, left: float) -> None:
    done = [took("bare", "a", 2.0)]
    ahead = [Part("bare", "b"), Part("bare", "c")]
    assert time_left(done, ahead, begun).seconds == pytest.approx(left)


def test_the_basis_says_what_the_estimate_rests_on() -> None:
    one = [took("bare", "a", 2.0)]
    assert time_left(one, [Part("bare", "b")]).basis == "the one point so far took 2 s"
    two = [*one, took("bare", "b", 4.0)]
    basis = time_left(two, [Part("torch", "a")]).basis
    assert basis.startswith("the 2 points so far took 3 s each on average; ")
    assert "measured again" in basis
    assert "passes that have not begun" in basis

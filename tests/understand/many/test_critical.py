"""What a scan's other batch sizes say of one."""

from __future__ import annotations

import pytest

from profharness.understand.loose.critical import through_others


def test_a_line_through_the_other_sizes() -> None:
    step_ns = {1: 1_100.0, 4: 1_400.0, 16: 2_600.0, 64: 9_999.0}  # 1000 + 100 x size, but for 64
    assert through_others(64, step_ns) == pytest.approx(7_400)
    assert through_others(32, {1: 1_100.0, 4: 1_400.0}) == pytest.approx(4_200)


def test_one_other_size_makes_no_line_and_no_time_is_negative() -> None:
    assert through_others(64, {64: 5.0, 1: 1.0}) is None
    assert through_others(1, {10: 10.0, 11: 100.0}) is None

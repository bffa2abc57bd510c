"""Lines on paper do not end between a number and its unit."""

from __future__ import annotations

import pytest

from profharness.report.documents.wrapping import unbroken


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("idle 93.0 %, mostly (82.9 %).", "idle 93.0_%, mostly (82.9_%)."),
        ("one gap of 268.8 ms makes up", "one gap of 268.8_ms makes up"),
        ("1.2 ± 0.1 ms", "1.2_±_0.1_ms"),
        ("3.477 ms ± 69 µs", "3.477_ms ±_69_µs"),
        ("234 k items/s", "234_k_items/s"),
        ("5.32 TB/s and 104.0 FLOP/B", "5.32_TB/s and 104.0_FLOP/B"),
        ("14 times as fast", "14_times as fast"),
        ("on 2 cores", "on 2_cores"),
        ("batch 4 has 8 trials", "batch 4 has 8 trials"),
        ("1 same, 2 min_x, 3 h5 files", "1 same, 2 min_x, 3 h5 files"),
    ],
)
def test_a_number_keeps_its_unit(text: str, held: str) -> None:
    assert unbroken(text) == held.replace("_", "\u00a0" if "min_x" not in text else "_")

"""Lines of the page end neither between a number and its unit nor inside of an option."""

from __future__ import annotations

import pytest

from profharness.report.page.templating import environment
from profharness.report.page.wrapping import unbroken, whole_options


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


def test_an_option_is_one_word() -> None:
    whole = whole_options("raise --warmup-time, or use a-b and x--y")
    assert whole == 'raise <span class="option">--warmup-time</span>, or use a-b and x--y'


def test_code_keeps_its_spaces_and_foreign_text_its_letters() -> None:
    page = environment("profharness.report.page").from_string("{{ text|coded }}")
    shown = page.render(text="5 ms: `run --time 5 s` <b>")
    assert shown == ('5\u00a0ms: <code>run <span class="option">--time</span> 5 s</code> &lt;b&gt;')

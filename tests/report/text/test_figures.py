from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.records import Estimate, Figure
from profharness.report.text.figures import (
    brief_text,
    estimate_text,
    figure_text,
    figure_tip,
    fraction_text,
    percent_text,
    quantity_text,
    si_text,
    suffixed_text,
    times_text,
)

T = "\u2009"


@pytest.mark.parametrize(
    ("value", "unit", "half", "text"),
    [
        (412_000_000, "ns", None, "412.0 ms"),
        (1.7, "ms", 0.012, "1.700 ± 0.012 ms"),
        (0.4, "ms", None, "400.0 µs"),
        (24_331.0, "jets/s", 41.0, f"24{T}331 ± 41 jets/s"),
        (3_221_225_472, "B", None, "3.0 GiB"),
        (1.214e14, "FLOP/s", None, "121 TFLOP/s"),
        (3.9e12, "B/s", None, "3.90 TB/s"),
        (0.8123, "share", None, "81.2 %"),
        (0.0042, "share", None, "0.42 %"),
        (0.000012, "share", None, "0.0012 %"),
        (0.0, "share", None, "0 %"),
        (1.0, "share", None, "100 %"),
        (0.99999, "share", None, "> 99.9 %"),
        (0.31, "share", 0.02, "31.0 % ± 2.0"),
        (1e-13, "share", None, "1e-11 %"),
        (1.03, "1", None, "1.03"),
        (100.0, "%", None, "100 %"),
        (8, "cores", None, "8 cores"),
        (1, "processes", None, "1 process"),
        (1.0, "trials", None, "1 trial"),
        (1.5, "processes", None, "1.500 processes"),
        (2, "processes", None, "2 processes"),
    ],
)
def test_quantities_carry_unit_and_uncertainty(
    value: float, unit: str, half: float | None, text: str
) -> None:
    assert quantity_text(value, unit, half) == text


def test_a_missing_figure_says_what_it_needs() -> None:
    assert figure_text(Figure(value=None, unit="W", needs="power")) == "not measured: needs power"
    assert figure_text(Figure(value=None, unit="W")) == "not measured"
    assert figure_text(None) == "not measured"


def test_a_lopsided_interval_shows_its_ends() -> None:
    assert (
        figure_text(Figure(value=0.59, unit="share", low=0.59, high=0.64))
        == "59.0 % (59.0 % to 64.0 %)"
    )
    assert figure_text(Figure(value=0.59, unit="share", low=0.59, high=0.59)) == "59.0 %"
    assert figure_text(Figure(value=0.59, unit="share", low=0.57, high=0.61)) == "59.0 % ± 2.0"
    assert figure_text(Figure(value=0.59, unit="share", low=0.59, high=0.5902)) == "59.0 %"


def test_an_interval_with_one_end_shows_it() -> None:
    rate = Figure(value=750.0, unit="steps/s", low=365.0)
    assert figure_text(rate) == "750 steps/s (365 steps/s or more)"
    assert figure_text(Figure(value=750.0, unit="steps/s", high=800.0)).endswith(
        "(800 steps/s or less)"
    )
    assert figure_text(rate, interval=False) == "750 steps/s"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_broken_figure_is_not_measured(value: float) -> None:
    assert figure_text(Figure(value=value, unit="W", low=value, high=value)) == "not measured"
    assert percent_text(Estimate(value=value)) == "not measured"
    assert fraction_text(value) == ""
    assert "nan" not in figure_tip(
        Figure(value=value, unit="W", low=value, high=value, source="sensor")
    )


def test_overheads_read_as_in_the_progress_lines() -> None:
    assert percent_text(Estimate(value=0.031, low=0.027, high=0.035)) == "3.1 % ± 0.4"
    assert percent_text(Estimate(value=0.031)) == "3.1 %"


def test_unbounded_ends_are_said() -> None:
    assert estimate_text(Estimate(value=251.0, low=238.0, high=None)) == "251 (238 to open)"
    assert estimate_text(Estimate(value=None, low=2048.0)) == f"above 2{T}048"
    assert estimate_text(Estimate(value=None)) == "not reached in this scan"


def test_provenance_names_interval_source_and_coverage() -> None:
    tip = figure_tip(
        Figure(
            value=0.8,
            unit="share",
            low=0.7,
            high=0.9,
            source="rocprofv3 pass",
            coverage=0.97,
            note="inflated",
        ),
        "how full",
    )
    assert tip == (
        "how full; 95 % interval 70.0 % to 90.0 %; from rocprofv3 pass; "
        "covers 97 % of kernel time; inflated"
    )


def test_coverage_says_what_it_is_of() -> None:
    power = Figure(value=300.0, unit="W", source="telemetry", coverage=0.97, coverage_of="the time")
    assert figure_tip(power) == "from telemetry; covers 97 % of the time"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("residual_ns", 1900, "residual 1.900 µs"),
        ("overhead_share", 0.079, "overhead 7.9 %"),
        ("pressure_percent", 12.5, "pressure 12.5 %"),
        ("longest_s", 2.4, "longest 2.400 s"),
        ("trials", 10, "trials 10"),
        ("power_w", 512.25, "power 512.2 W"),
        ("leaked_trials", 2, "leaked trials 2"),
        ("lost_bytes", 2048, "lost 2.0 KiB"),
        ("kernel", "gemm", "kernel gemm"),
    ],
)
def test_finding_figures_read_by_their_suffix(name: str, value: float | str, text: str) -> None:
    assert suffixed_text(name, value) == text


def test_counted_rates_stand_apart_from_their_prefix() -> None:
    assert si_text(24_435, "jets/s") == "24.4 k jets/s"
    assert si_text(809.2, "jets/s") == "809 jets/s"
    assert si_text(2.5e9, "Hz") == "2.50 GHz"


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_brief_numbers_keep_four_digits(value: float) -> None:
    shown = float(brief_text(value).replace(T, ""))
    assert math.isclose(shown, value, rel_tol=6e-4, abs_tol=1e-9)
    assert "e" not in brief_text(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.814, "0.81"),
        (0.00123, "0.0012"),
        (3.9e-8, "0.000000039"),
        (3.86e-11, "3.9e-11"),
    ],
)
def test_a_share_of_any_size_shows_digits(value, text):
    assert fraction_text(value) == text


def test_one_figure_over_another_is_so_many_times() -> None:
    assert times_text(1.234, 1.193, 1.275) == "1.234 ± 0.041 times"
    assert times_text(2.0) == "2.000 times"

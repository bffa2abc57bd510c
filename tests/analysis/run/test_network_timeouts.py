"""Timeouts of Slingshot NICs in the measured time."""

from __future__ import annotations

import pytest

from profharness.analysis.records import Figure
from profharness.analysis.run.checks import telemetry_findings
from profharness.findings import Finding
from profharness.trace.model import Strings, Trace


def found(**rates: float) -> list[Finding]:
    figures = {name: Figure(value=rate, unit="events/s") for name, rate in rates.items()}
    every = telemetry_findings(Trace(sources=(), strings=Strings()), figures)
    return [one for one in every if one.id == "network-timeouts"]


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ({"slingshot_timeouts": 0.5}, "timed out 0.5 times per second: packets"),
        (
            {"slingshot_timeouts": 0.6, "slingshot_timeouts_n1": 0.1, "slingshot_timeouts_n2": 0.5},
            "timed out 0.6 times per second, most often those of n2: packets",
        ),
        (
            {"slingshot_timeouts": 0.1, "slingshot_timeouts_n1": 0.1, "slingshot_timeouts_n2": 0.0},
            "timed out 0.1 times per second on n1: packets",
        ),
    ],
)
def test_timeouts_are_told_with_their_node(rates: dict[str, float], said: str) -> None:
    (one,) = found(**rates)
    assert one.id == "network-timeouts"
    assert said in one.message
    assert one.figures == {"timeouts_per_s": rates["slingshot_timeouts"]}


def test_retries_and_pauses_are_not() -> None:
    told = found(slingshot_timeouts=0.0, slingshot_link_retries=900.0, slingshot_pauses=9e3)
    assert "network-timeouts" not in [one.id for one in told]

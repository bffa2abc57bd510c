"""Many bytes over the sockets of Slingshot's interfaces."""

from __future__ import annotations

import pytest

from profharness.analysis.records import Figure
from profharness.analysis.run.checks import telemetry_findings
from profharness.findings import Finding
from profharness.trace.model import Strings, Trace


def found(**rates: float) -> list[Finding]:
    figures = {
        name.replace("__", ":"): Figure(value=rate, unit="B/s") for name, rate in rates.items()
    }
    every = telemetry_findings(Trace(sources=(), strings=Strings()), figures)
    return [one for one in every if one.id == "socket-traffic"]


def test_collectives_over_sockets_are_told() -> None:
    (one,) = found(network_sent__hsn0=300e6, network_sent__hsn1=100e6, slingshot_sent=420e6)
    assert one.id == "socket-traffic"
    assert "400 MB/s went over the sockets of Slingshot's interfaces (hsn), 95 %" in one.message
    assert one.figures == {"bytes_per_s": 400e6}


def test_where_the_nics_tell_nothing_the_rate_decides() -> None:
    assert len(found(network_received__hsn0=60e6)) == 1


def test_of_several_nodes_the_one_with_the_most_is_named() -> None:
    (one,) = found(
        network_sent__hsn0=90e6,
        network_sent__hsn0_n1=20e6,
        network_sent__hsn0_n2=70e6,
        slingshot_sent_n2=100e6,
    )
    assert "70 MB/s" in one.message
    assert "n2" in one.message


@pytest.mark.parametrize(
    "rates",
    [
        {"network_sent__hsn0": 10e6},  # a shell, a log
        {"network_sent__eth0": 900e6},  # not Slingshot
        {"network_sent__hsn0": 300e6, "slingshot_sent": 10e9},  # beside collectives that are well
        # many nodes with little each
        {"network_sent__hsn0": 80e6, **{f"network_sent__hsn0_n{n}": 10e6 for n in range(8)}},
    ],
)
def test_small_talk_and_other_interfaces_are_not(rates: dict[str, float]) -> None:
    assert "socket-traffic" not in [one.id for one in found(**rates)]

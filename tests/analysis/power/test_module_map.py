"""Modules of the node's own meter, tied to packages by their power."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.power.module_map import module_map
from profharness.analysis.power.records import ModulePlace
from profharness.report.tables.nodes import node_tables
from profharness.stats.packages import Package
from profharness.stats.streams import Stream
from profharness.trace.model import F64, Samples

S = 1_000_000_000
PLACES = [f"0000:{bus}:00.0" for bus in ("c1", "c6", "d1", "d6")]
BOARD = [2, 0, 3, 1]  # accel0 is the package of PLACES[2], and so on


def series(watts: F64, every_ns: int, start: int = 0) -> Samples:
    at = start + np.arange(len(watts)) * every_ns
    return Samples.build(len(at), at_ns=at, until_ns=at, value=watts, device=0, metric=0, source=0)


def loads(kind: str, rng: np.random.Generator, seconds: int) -> F64:
    """Power by package and tenth of a second."""
    count = 10 * seconds
    together = np.where(np.arange(count) % 80 < 40, 450.0, 150.0)
    own = np.tile(together, (4, 1))
    if kind == "alone":  # one after the other for 8 s
        turn = np.arange(count) // 80 % 4
        own = np.where(turn == np.arange(4)[:, None], 450.0, 100.0)
    return own + rng.normal(0, 4, own.shape)


def mapped(kind: str, *, seconds: int = 96, host: str = "") -> tuple[ModulePlace, ...]:
    rng = np.random.default_rng(3)
    drawn = loads(kind, rng, seconds)
    found = [
        Package(
            f"{host}/{place}" if host else place,
            "package of 2 dies",
            (str(number),),
            series(drawn[number], S // 10),
            Samples.empty(),
            host=host,
        )
        for number, place in enumerate(PLACES)
    ]
    every = [
        # upstream of the package: losses, another offset, a second late, and noise of its own
        Stream(
            f"power_module:accel{module}",
            "",
            series(1.08 * drawn[package] + 30 + rng.normal(0, 6, drawn.shape[1]), S // 10, S),
            host=host,
        )
        for module, package in enumerate(BOARD)
    ]
    return module_map(every, found)


@pytest.mark.parametrize("host", ["", "n1"])
def test_loads_one_at_a_time_tell_the_map(host: str) -> None:
    places = mapped("alone", host=host)
    assert [one.package for one in places] == [PLACES[number] for number in BOARD]
    assert all(one.correlation is not None and one.correlation > 0.9 for one in places)
    (table,) = node_tables(None, places)
    assert table.rows[0][1].text == PLACES[2]


def test_loads_that_rise_together_leave_it_unknown() -> None:
    places = mapped("together")
    assert {one.package for one in places} == {""}
    assert {"rose and fell together" in one.why for one in places} == {True}
    (table,) = node_tables(None, places)
    assert {row[1].text for row in table.rows} == {"unknown"}


def test_a_short_run_says_what_it_takes() -> None:
    places = mapped("alone", seconds=20)
    assert {(one.package, one.why) for one in places} == {
        ("", "it takes 16 parts of 2 s with samples of all")
    }


def test_one_module_and_one_package_belong_together() -> None:
    package = Package(PLACES[0], "device", ("0",), series(np.ones(9), S), Samples.empty())
    module = Stream("power_module:accel0", "", series(np.ones(9), S))
    (place,) = module_map([module], [package])
    assert (place.package, place.why) == (PLACES[0], "the only one")
    (place,) = module_map([module], [])
    assert (place.package, place.why) == ("", "no driver gives the power of a package")


def test_without_such_a_meter_there_is_no_map() -> None:
    assert module_map([Stream("power_w", "0", series(np.ones(9), S))], []) == ()

"""What a driver gives as one table is kept as it is: which parts of it, and what the reader makes
of them.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.rundir import telemetry
from profharness.telemetry.files import AppendFile
from profharness.telemetry.records import Layout, block_type, encode_header
from profharness.telemetry.sampler import Rows, interval_ns, order, period_of
from profharness.telemetry.sources import Column, Missing, SampledDevice, Taken
from profharness.telemetry.sources.amd.table import cuts, kept

TENTH = 100_000_000
TABLE = struct.Struct("<4H2IQ")  # four clocks, an accumulator and its cycles, status bits
CLOCKS, GROWN, CYCLES, STATUS = (
    Taken(0, "H", 4, 0xFFFF),
    Taken(8, "I", 1, 0xFFFFFFFF),
    Taken(12, "I", 1, 0xFFFFFFFF),
    Taken(16, "Q", 1, (1 << 64) - 1),
)


class Driver:
    """Gives one table after the other."""

    name = "driver"
    max_hz = 1000.0
    devices = (SampledDevice("0", "0000:c1:00.0", "MI300X", "amd"),)
    columns = (
        Column("", "", "instant", type=block_type(TABLE.size), role="block"),
        Column("clock_gpu", "MHz", "instant", device=0, taken=(CLOCKS,), how="mean"),
        Column("gpu_percent", "%", "instant", device=0, taken=(CLOCKS,), how="average"),
        Column("clock_soc", "MHz", "instant", device=0, taken=(CLOCKS,)),
        Column("xgmi_read", "B/s", "counter", 10.0, device=0, taken=(CLOCKS,), how="total"),
        Column(
            "throttle_power",
            "share",
            "share",
            1.0,
            device=0,
            taken=(GROWN,),
            over=CYCLES,
            at_most=1.01,
        ),
        Column("throttle_thermal", "share", "bits", device=0, taken=(STATUS,), bits=0b110),
    )

    def __init__(self, tables: list[tuple[int, ...]]) -> None:
        self._tables = iter(tables)

    def probe(self) -> tuple[Missing, ...]:
        return ()

    def read(self, row: list[Any], at: int) -> None:
        row[at] = TABLE.pack(*next(self._tables))


def series(path: Path, tables: list[tuple[int, ...]]) -> dict[str, list[float]]:
    layout = Layout((Driver(tables),))
    file = AppendFile(str(path))
    file.append(encode_header(layout, {"host": "h", "hz": 10.0}))
    rows = Rows(layout, TENTH, file)
    for tick in range(len(tables)):
        rows.record(tick * TENTH, 0)
    file.close()
    trace = telemetry.read(path)
    return {
        metric: trace.samples.value[trace.samples.metric == trace.strings.find(metric)].tolist()
        for metric in (
            "clock_gpu",
            "gpu_percent",
            "clock_soc",
            "xgmi_read",
            "throttle_power",
            "throttle_thermal",
        )
    }


def test_values_of_a_block_are_those_that_were_set(tmp_path: Path) -> None:
    found = series(
        tmp_path / "f",
        [(100, 103, 0xFFFF, 0xFFFF, 0, 0, 0), (0xFFFF, 7, 8, 8, 0, 0, 0), (*[0xFFFF] * 4, 0, 0, 0)],
    )
    assert found["clock_gpu"] == [102, 8]  # rounded, as the driver's own numbers are
    assert found["gpu_percent"] == [101.5, pytest.approx(23 / 3)]
    assert found["clock_soc"] == [100]  # the first one, where it is set
    assert found["xgmi_read"] == []  # 203, then 23: it fell


def test_shares_are_growth_over_growth_across_the_wrap_and_stop_when_they_are_none(
    tmp_path: Path,
) -> None:
    top = 0xFFFFFFF0
    clocks = (1, 1, 1, 1)
    found = series(
        tmp_path / "f",
        [(*clocks, 0, top, 0), (*clocks, 8, top, 0), (*clocks, 8, 0x10, 0), (*clocks, 24, 0x30, 0)],
    )
    assert found["throttle_power"] == [0.25, 0.5]  # the second table shows no new cycle
    found = series(
        tmp_path / "g",
        [(*clocks, 0, 0, 0), (*clocks, 5, 10, 0), (*clocks, 99, 20, 0), (*clocks, 100, 30, 0)],
    )
    assert found["throttle_power"] == [
        0.5
    ]  # 94 of 10 cycles is no share: nothing of it counts from there on


def test_bits_hold_since_the_read_before(tmp_path: Path) -> None:
    found = series(
        tmp_path / "f", [(1, 1, 1, 1, 0, 0, status) for status in (0b100, 0b001, 0b010, 0, 0b111)]
    )
    assert found["throttle_thermal"] == [0, 1, 0, 1]


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from("HIQ"), st.integers(1, 8)),
        min_size=1,
        max_size=12,
    )
)
def test_what_is_kept_of_a_table_holds_every_wanted_value(
    places: list[tuple[int, str, int]],
) -> None:
    wanted = [Taken(*place) for place in places]
    table = bytes(value % 251 for value in range(3100))
    parts = cuts(wanted)
    left = b"".join(table[start:end] for start, end, _ in parts)
    assert parts[0].start == 0
    for taken in wanted:
        form = struct.Struct(f"<{taken.repeat}{taken.code}")
        assert form.unpack_from(left, kept(taken, parts).offset) == form.unpack_from(
            table, taken.offset
        )


class _Slow(Driver):
    name, max_hz = "slow", 2.0


def test_sources_of_every_tick_come_first(tmp_path: Path) -> None:
    fast, slow = Driver([]), _Slow([])
    assert order((slow, fast), TENTH) == (fast, slow)
    assert [interval_ns(source, TENTH) for source in (fast, slow)] == [TENTH, 5 * TENTH]
    with pytest.raises(ValueError, match="come first"):
        Rows(Layout((slow, fast)), TENTH, AppendFile(str(tmp_path / "f")))


@pytest.mark.parametrize(
    ("hz", "period_ns"),
    [(10.0, TENTH), (3.0, 333_333_333), (0.1, 10_000_000_000), (0.3, 3_333_333_332)],
)
def test_the_period_is_a_multiple_of_the_timers(hz: float, period_ns: int) -> None:
    assert period_of(hz) == period_ns
    assert period_ns == pytest.approx(1e9 / hz, rel=1e-9)

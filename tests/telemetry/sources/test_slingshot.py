"""Bytes of Slingshot NICs, over an emulated /sys/class/cxi and through the sampler's rows."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.report.text.names import title_of
from profharness.rundir import telemetry
from profharness.stats.streams import streams
from profharness.telemetry.files import AppendFile
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sampler import Rows
from profharness.telemetry.sources.host import slingshot
from profharness.telemetry.sources.host.slingshot import SlingshotSource, parsed
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import unit_of

TENTH = 100_000_000
ALL = {
    "hni_sts_rx_ok_octets": 1000,
    "hni_sts_tx_ok_octets": 2000,
    "hni_sts_rx_octets_opt": 900,
    "hni_sts_tx_octets_opt": 1700,
    "hni_sts_rx_octets_ieee": 100,
    "hni_sts_tx_octets_ieee": 300,
}
EVENTS = {
    "hni_llr_tx_replay_event": 3,
    "hni_llr_rx_replay_event": 4,
    "hni_pause_sent": 5,
    "pct_sct_timeouts": 1,
    "pct_spt_timeouts": 1,
    "pct_tct_timeouts": 0,
}
TOLD = ["slingshot_link_retries", "slingshot_pauses", "slingshot_timeouts"]


def nic(sysfs: Path, name: str, counts: dict[str, int], at_ns: int = 0) -> None:
    """All counters of a NIC, as the driver prints them: the count and the time of its reading."""
    folder = sysfs / "class/cxi" / name / "device/telemetry"
    folder.mkdir(parents=True, exist_ok=True)
    seconds, part = divmod(at_ns or time.time_ns(), 1_000_000_000)
    for counter, count in counts.items():
        (folder / counter).write_text(f"{count}@{seconds}.{part:09d}\n")


def values(source: SlingshotSource) -> dict[str, int | float]:
    row: list[int | float] = [-1] * len(source.columns)
    source.read(row, 0)
    return {
        column.metric or column.role: raw
        for column, raw in zip(source.columns, row, strict=True)
        if raw != -1
    }


def grown(before: dict[str, int | float], after: dict[str, int | float]) -> dict[str, int | float]:
    return {name: after[name] - before[name] for name in before if name != "stamp"}


def test_octets_and_their_parts_of_all_nics(tmp_path: Path) -> None:
    nic(tmp_path, "cxi0", ALL)
    nic(tmp_path, "cxi1", dict.fromkeys(ALL, 50))
    source = SlingshotSource(str(tmp_path))
    assert [one.metric for one in source.probe()] == TOLD
    before = values(source)
    nic(tmp_path, "cxi0", {name: 2 * count for name, count in ALL.items()})
    nic(tmp_path, "cxi1", dict.fromkeys(ALL, 57))
    assert grown(before, values(source)) == {
        "slingshot_received": 1007,
        "slingshot_sent": 2007,
        "slingshot_received_optimised": 907,
        "slingshot_sent_optimised": 1707,
        "slingshot_received_ethernet": 107,
        "slingshot_sent_ethernet": 307,
        "slingshot_received:cxi0": 1000,
        "slingshot_sent:cxi0": 2000,
        "slingshot_received:cxi1": 7,
        "slingshot_sent:cxi1": 7,
    }
    assert {unit_of(column.metric) for column in source.columns[1:]} == {"B/s"}
    assert title_of("slingshot_sent:cxi0") == "Slingshot sent, cxi0"
    assert source.max_hz <= 2


def test_few_files_are_read_of_the_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nic(tmp_path, "cxi0", {**ALL, **{f"hni_other_{number}": 1 for number in range(50)}})
    source = SlingshotSource(str(tmp_path))
    source.probe()
    real, reads = os.pread, []

    def counted(handle: int, size: int, offset: int) -> bytes:
        reads.append(handle)
        return real(handle, size, offset)

    monkeypatch.setattr(slingshot.os, "pread", counted)
    values(source)
    assert len(reads) == 6


def test_the_time_is_the_drivers(tmp_path: Path) -> None:
    stamp = time.time_ns() - 30_000_000
    nic(tmp_path, "cxi0", ALL, at_ns=stamp)
    source = SlingshotSource(str(tmp_path))
    source.probe()
    offset = time.time_ns() - time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    assert values(source)["stamp"] == pytest.approx(stamp - offset, abs=20_000_000)
    nic(tmp_path, "cxi0", ALL, at_ns=12 * 10**9)  # of a clock since its own start
    assert "stamp" not in values(source)


def test_without_parts_the_octets_remain(tmp_path: Path) -> None:
    nic(tmp_path, "cxi0", {name: ALL[name] for name in list(ALL)[:2]})
    source = SlingshotSource(str(tmp_path))
    absent = source.probe()
    assert [one.metric for one in absent] == [
        "slingshot_received_optimised",
        "slingshot_sent_optimised",
        "slingshot_received_ethernet",
        "slingshot_sent_ethernet",
        *TOLD,
    ]
    assert set(values(source)) == {"stamp", "slingshot_received", "slingshot_sent"}


def test_retries_pauses_and_timeouts_are_events(tmp_path: Path) -> None:
    for name in ("cxi0", "cxi1"):
        nic(tmp_path, name, {**ALL, **EVENTS})
    source = SlingshotSource(str(tmp_path))
    assert source.probe() == ()
    before = values(source)
    nic(tmp_path, "cxi1", {**ALL, **{name: 10 + count for name, count in EVENTS.items()}})
    moved = {name: by for name, by in grown(before, values(source)).items() if by}
    assert moved == {TOLD[0]: 20, TOLD[1]: 10, TOLD[2]: 30}
    assert {unit_of(name) for name in TOLD} == {"events/s"}
    units = {column.metric: column.unit for column in source.columns}
    assert {name: units[name] for name in TOLD} == dict.fromkeys(TOLD, "events/s")


def classes(direction: str, frames: int) -> dict[str, int]:
    sizes = ("27", "35", "36_to_63", "64", "65_to_127", "8192_to_max")
    return {f"hni_{direction}_ok_{size}": frames for size in sizes}


def test_without_octets_frames_by_size_are_a_lower_bound(tmp_path: Path) -> None:
    for name in ("cxi0", "cxi1"):
        nic(tmp_path, name, {**classes("rx", 1000), **classes("tx", 2000), "hni_rx_ok_x": 9})
    source = SlingshotSource(str(tmp_path))
    absent = [one.metric for one in source.probe()]
    assert absent[:2] == ["slingshot_received", "slingshot_sent"]
    before = values(source)
    nic(tmp_path, "cxi0", {**classes("rx", 1001), **classes("tx", 2010)})
    least = 27 + 35 + 36 + 64 + 65 + 8192
    assert grown(before, values(source)) == {
        "slingshot_received_least": least,
        "slingshot_sent_least": 10 * least,
        "slingshot_received_least:cxi0": least,
        "slingshot_sent_least:cxi0": 10 * least,
        "slingshot_received_least:cxi1": 0,
        "slingshot_sent_least:cxi1": 0,
    }
    assert title_of("slingshot_sent_least:cxi0") == "Slingshot sent, at least, cxi0"


def test_a_nic_with_octets_is_not_mixed_with_one_of_a_lower_bound(tmp_path: Path) -> None:
    nic(tmp_path, "cxi0", ALL)
    nic(tmp_path, "cxi1", {**classes("rx", 1), **classes("tx", 1)})
    source = SlingshotSource(str(tmp_path))
    source.probe()
    metrics = {column.metric for column in source.columns}
    assert {"slingshot_received", "slingshot_sent"} <= metrics
    assert not any("least" in metric for metric in metrics)


def test_what_cannot_be_read_has_a_reason(tmp_path: Path) -> None:
    absent = SlingshotSource(str(tmp_path)).probe()
    assert [one.metric for one in absent][:2] == ["slingshot_received", "slingshot_sent"]
    assert len(absent) == 9
    assert "no Slingshot NIC" in absent[0].why
    folder = tmp_path / "class/cxi/cxi0/device/telemetry"
    folder.mkdir(parents=True)
    assert "No such file" in SlingshotSource(str(tmp_path)).probe()[0].why
    for name in ALL:
        (folder / name).write_text("")
    assert "no number in it" in SlingshotSource(str(tmp_path)).probe()[0].why


def test_texts_of_the_driver() -> None:
    assert parsed(b"123@1700000000.000000042\n") == (123, 1_700_000_000_000_000_042)
    assert parsed(b"123\n") == (123, 0)
    with pytest.raises(ValueError, match="invalid literal"):
        parsed(b"")


def sampled(tmp_path: Path, steps: list[tuple[int, int]]) -> Trace:
    """Two NICs whose received octets take these values, a tenth of a second apart."""
    begin = time.time_ns() - 5_000_000_000
    sysfs = tmp_path / "sys"

    def at(number: int) -> None:
        for name, count in zip(("cxi0", "cxi1"), steps[number], strict=True):
            nic(sysfs, name, dict.fromkeys(ALL, count), at_ns=begin + number * TENTH)

    at(0)
    source = SlingshotSource(str(sysfs))
    source.probe()
    layout = Layout((source,))
    file = AppendFile(str(tmp_path / "samples"))
    file.append(encode_header(layout, {"host": "h", "hz": 10.0}))
    rows = Rows(layout, TENTH, file)
    for number in range(len(steps)):
        at(number)
        # a second apart on the sampler's clock, so that a source of two reads a second is due
        rows.record(number * 1_000_000_000, 0)
    file.close()
    return telemetry.read(tmp_path / "samples")


def test_a_restarted_counter_leaves_a_gap_and_no_wrong_rate(tmp_path: Path) -> None:
    """The other NIC grows by more than the first one lost: a plain sum would hide the restart."""
    most = 2**56 - 1
    steps = [(most - 30, 0), (most - 20, 100), (5, 2**57), (15, 2**57 + 100), (25, 2**57 + 200)]
    trace = sampled(tmp_path, steps)
    total = next(one for one in streams(trace) if one.metric == "slingshot_received").samples
    assert total.value == pytest.approx([1100, 1100, 1100], rel=0.01)
    begins = (total.at_ns - total.at_ns[0]) / TENTH
    assert np.round(begins).tolist() == [0, 2, 3]  # the second interval has no value
    own = next(one for one in streams(trace) if one.metric == "slingshot_received:cxi0").samples
    assert own.value == pytest.approx([100, 100, 100], rel=0.01)
    assert any("went backwards" in problem.message for problem in trace.problems)

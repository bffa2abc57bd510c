"""How many XCDs a device has where sysinfo.csv says something else: the device table and the
counters together decide, neither alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.analysis.kernels import counter_shares
from profharness.node.dies import known_dies
from profharness.readers.rocprof_compute import reader
from profharness.trace.model import Trace

HEAD = (
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,SQ_BUSY_CU_CYCLES,"
    "GRBM_COUNT,Start_Timestamp,End_Timestamp"
)
NS = 10_000  # of the one kernel


def counted(folder: Path, facts: str, cycles: int, *, end: str = str(NS)) -> Trace:
    """A kernel of 10 µs on a device of these facts: architecture, compute units, mode, XCDs,
    clock; `cycles` is GRBM_COUNT over all XCDs.
    """
    (folder / "sysinfo.csv").write_text(
        f"gpu_arch,cu_per_gpu,compute_partition,num_xcd,max_sclk,gpu_model\n{facts},MI\n"
    )
    path = folder / "pmc_perf.csv"
    path.write_text(f"{HEAD}\n0,k,1,512,256,1000000,{cycles},0,{end}\n")
    return reader.read(path)


@pytest.mark.parametrize(
    ("facts", "per_ns", "dies"),
    [
        ("gfx942,304,SPX,1,2100", 8 * 2.1, 8),
        ("gfx942,304,SPX,1,0", 8 * 2.1, 8),  # the clock of the table
        ("gfx942,304,,1,2100", 8 * 2.1, 8),
        ("gfx942,228,SPX,1,2100", 6 * 2.1, 6),
        ("gfx950,256,SPX,1,2400", 8 * 2.4, 8),
        ("gfx942,152,DPX,1,2100", 4 * 2.1, 4),
        # right as it is, though short kernels may show more cycles than they last
        ("gfx942,304,SPX,8,2100", 8 * 3.1, 8),
        ("gfx942,38,CPX,1,2100", 2.1, 1),
        # the counters do not contradict the file
        ("gfx942,304,SPX,1,2100", 2.1, 1),
        ("gfx942,304,SPX,1,2100", 2.15, 1),
        # counters alone say nothing where the table knows no such device
        ("gfx942,100,SPX,1,2100", 8 * 2.1, 1),
        ("gfx942,304,DPX,1,2100", 8 * 2.1, 1),
        ("gfx1151,32,N/A,1,2799", 8 * 2.8, 1),
    ],
)
def test_the_table_overrules_the_file_where_the_counters_do_too(
    tmp_path: Path, facts: str, per_ns: float, dies: int
) -> None:
    trace = counted(tmp_path, facts, round(per_ns * NS))
    assert trace.devices[0].dies == dies
    told = [row for row in trace.problems if "num_xcd" in row.message]
    assert [row.severity for row in told] == ["warning"] * (f",{dies}," not in facts)
    if told:
        assert f"num_xcd 1, but {facts.partition(',')[0]}" in told[0].message
        assert f"{dies} is used here" in told[0].message


def test_without_times_or_cycles_the_file_is_believed(tmp_path: Path) -> None:
    facts = "gfx942,304,SPX,1,2100"
    assert counted(tmp_path, facts, 8 * 21_000, end="0").devices[0].dies == 1
    text = (tmp_path / "pmc_perf.csv").read_text().replace("GRBM_COUNT", "SQ_WAVES")
    (tmp_path / "pmc_perf.csv").write_text(text)
    assert reader.read(tmp_path / "pmc_perf.csv").devices[0].dies == 1


def test_shares_are_those_of_a_device_that_was_told_right(tmp_path: Path) -> None:
    shares = []
    for told in (1, 8):
        trace = counted(tmp_path, f"gfx942,304,SPX,{told},2100", 8 * 21_000)
        shares.append(float(counter_shares.of_kernels(trace)["simd_utilisation"][0]))
    assert shares[0] == shares[1] == pytest.approx(1_000_000 / 21_000 / 304)


def test_products_of_one_size_agree() -> None:
    assert [known_dies("gfx942", units) for units in (100, None)] == [None, None]
    eight = known_dies("gfx942:sramecc+", 304)
    assert (eight.dies, eight.clock_mhz) == (8, 2100) if eight else False
    assert known_dies("sm_90", 132) is not None

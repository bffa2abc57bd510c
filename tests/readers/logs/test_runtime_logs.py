"""Logs of the HIP runtime and of MIOpen: the forms of all releases, other text in between, and what
they cannot say.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.errors import InputError
from profharness.readers.logs import miopen_log
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace

AMD = "fixtures/rocm/amd_log_level"
MIOPEN = "fixtures/rocm/miopen_log"


def read(path: Path, *lines: str) -> Trace:
    path.write_text("\n".join(lines) + "\n")
    return readers.read(path)


def line(at: int, identity: str, message: str, level: int = 3) -> str:
    return f":{level}:{'hip_module.cpp':<25}:{12:<4}: {at:010d} us: {identity}{message}"


def calls(trace: Trace) -> list[tuple[str, int]]:
    return list(zip(trace.strings.decode(trace.api.name), trace.api.dur_ns.tolist(), strict=True))


def submissions(trace: Trace) -> list[tuple[str, int]]:
    return list(
        zip(trace.strings.decode(trace.marks.name), trace.marks.dur_ns.tolist(), strict=True)
    )


# identity as each release writes it, process and thread
IDENTITIES = {
    "4.5": ("120148: [7fb360ad23c0] ", 120148, 0x7FB360AD23C0),
    "4.5 without process": ("[7fb360ad23c0]!\t", NULL, 0x7FB360AD23C0),
    "5.x": ("9174 : [tid:0x7f0824e798c0] ", 9174, 0x7F0824E798C0),
    "6.0": ("[pid:2429112 tid:0x70536bbc5640] ", 2429112, 0x70536BBC5640),
    "6.3 at level 3": ("", NULL, NULL),
    "7.x": ("[pid:309675 tid: 0x73e303fff6c0] ", 309675, 0x73E303FFF6C0),
}


class TestHipLog:
    @pytest.mark.parametrize("release", IDENTITIES)
    def test_a_call_and_its_return(self, tmp_path: Path, release: str) -> None:
        identity, pid, tid = IDENTITIES[release]
        trace = read(
            tmp_path / "hip.log",
            line(1000, identity, " hipSetDevice ( 0 ) "),
            line(1007, identity, "hipSetDevice: Returned hipSuccess : "),
        )
        assert trace.sources[0].format == "amd-log"
        assert trace.sources[0].clock is ClockDomain.MONOTONIC
        assert calls(trace) == [("hipSetDevice", 7000)]
        assert (trace.api.start_ns.tolist(), trace.api.pid.tolist(), trace.api.tid.tolist()) == (
            [1_000_000],
            [pid],
            [tid],
        )

    def test_calls_nest_and_threads_do_not_mix(self, tmp_path: Path) -> None:
        one, other = "[pid:1 tid:0xa] ", "[pid:1 tid:0xb] "
        trace = read(
            tmp_path / "hip.log",
            line(10, one, " hipMemcpy ( 1 ) "),
            line(11, other, " hipFree ( 2 ) "),
            line(12, one, " hipMalloc ( 3 ) "),
            line(13, one, "hipMalloc: Returned hipSuccess : "),
            line(20, one, "hipMemcpy: Returned hipSuccess : "),
            line(30, other, "hipFree: Returned hipSuccess : "),
        )
        assert sorted(calls(trace)) == [
            ("hipFree", 19000),
            ("hipMalloc", 1000),
            ("hipMemcpy", 10000),
        ]

    def test_a_return_without_entry_counts_from_its_duration(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "hip.log",
            line(100, "", "hipMalloc: Returned hipSuccess : 0x7f: duration: 34 us"),
            line(110, "", "hipFree: Returned hipSuccess : "),
            line(120, "", " hipInit ( 0 ) "),
        )
        assert calls(trace) == [("hipMalloc", 34000)]
        said = {p.message.split(" ")[2]: p.count for p in trace.problems[1:]}
        assert sum(said.values()) == 2

    def test_a_launch_is_a_submission_not_a_kernel(self, tmp_path: Path) -> None:
        who = "[pid:1 tid:0xa] "
        trace = read(
            tmp_path / "hip.log",
            line(10, who, " hipLaunchKernel ( 0x1, , , 0x2, 0, stream:<null> ) "),
            line(12, who, "ShaderName : void k<int>(int)"),
            line(
                15,
                who,
                "SWq=0x1, HWq=0x2, id=1, Dispatch Header = 0x1502 (type=2, barrier=1), "
                "setup=3, grid=[1000, 2, 1], workgroup=[256, 1, 1], "
                "private_seg_size=0, completion_signal=0x0",
                4,
            ),
            line(16, who, "hipLaunchKernel: Returned hipSuccess : : duration: 6 us"),
        )
        assert len(trace.kernels) == 0
        assert submissions(trace) == [
            ("submission of void k<int>(int): 4 x 2 x 1 workgroups of 256 x 1 x 1", 3000)
        ]
        assert calls(trace) == [("hipLaunchKernel", 6000)]
        assert not hotspots.default(trace).rows
        table = hotspots.listed(trace).table()
        assert (table.by, table.total_ns) == ("call", 9000)
        assert [(row.name, row.category, row.calls, row.total_ns) for row in table.rows] == [
            ("hipLaunchKernel", "hip", 1, 6000),
            ("submission of void k<int>(int)", "submission", 1, 3000),
        ]

    def test_submissions_of_one_kernel_count_together_whatever_their_shape(
        self, tmp_path: Path
    ) -> None:
        lines = [
            text
            for at in (10, 50)
            for text in (
                line(
                    at,
                    "",
                    f" hipLaunchKernel ( 0x1, {{{at},1,1}}, {{256,1,1}}, 0x2, 0, "
                    "char array:<null> ) ",
                ),
                line(at + 2, "", "ShaderName : k"),
                line(at + 6, "", "hipLaunchKernel: Returned hipSuccess : "),
            )
        ]
        table = hotspots.by_call(read(tmp_path / "hip.log", *lines))
        assert [
            (row.name, row.calls, row.total_ns, row.min_ns, row.max_ns) for row in table.rows
        ] == [("hipLaunchKernel", 2, 12000, 6000, 6000), ("submission of k", 2, 8000, 4000, 4000)]

    def test_without_packets_the_geometry_is_that_of_the_call(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "hip.log",
            line(9, "", " __hipPopCallConfiguration ( {6709,29667,58}, {0,0,92}, 0x7, 0x3 ) "),
            line(
                10, "", " hipLaunchKernel ( 0x1, {14,1,1}, {256,1,1}, 0x2, 0, char array:<null> ) "
            ),
            line(12, "", "ShaderName : k"),
            line(16, "", "hipLaunchKernel: Returned hipSuccess : "),
        )
        assert submissions(trace) == [
            ("submission of k: 14 x 1 x 1 workgroups of 256 x 1 x 1", 4000)
        ]

    def test_a_launch_that_failed_is_counted(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "hip.log",
            line(10, "", " hipLaunchKernel ( 0x1 ) "),
            line(12, "", "ShaderName : k"),
            line(16, "", "hipLaunchKernel: Returned hipErrorIllegalState : "),
        )
        assert submissions(trace) == []
        assert any(
            p.count == 1 and "not seen to be dispatched" in p.message for p in trace.problems
        )

    def test_signals_with_times_are_device_work_on_another_clock(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "hip.log",
            line(10, "", "ShaderName : k"),
            line(
                11,
                "",
                "Dispatch Header = 0xb02 (type=2, x), grid=[512, 1, 1], workgroup=[256, 1, 1], "
                "completion_signal=0xabc",
                4,
            ),
            line(90, "", "Signal = (0xabc), start = 20000, end = 24640"),
            line(91, "", "Signal = (0xdef), start = 30000, end = 30010"),
        )
        assert [source.clock for source in trace.sources] == [
            ClockDomain.MONOTONIC,
            ClockDomain.BOOTTIME,
        ]
        assert set(trace.kernels.source.tolist()) == {1}
        assert trace.kernels.dur_ns.tolist() == [4640, 10]
        assert trace.strings.decode(trace.kernels.name) == [
            "k",
            "device work of a signal without a kernel",
        ]
        assert trace.kernels.workgroups.tolist() == [2, NULL]

    def test_text_of_the_program_is_passed_over_and_counted(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "hip.log",
            "PASSED!",
            "",
            line(10, "", " \x1b[32mhipInit ( 0 )\x1b[0m "),
            "half :3:a.cpp :1 : 5 us: x",
            line(11, "", "hipInit: Returned hipSuccess : "),
        )
        assert calls(trace) == [("hipInit", 1000)]
        assert any(p.count == 2 and "text of the program" in p.message for p in trace.problems)

    @pytest.mark.parametrize(
        ("file", "lines", "others"),
        [
            ("rocm4_5_level4_spack27535.log", 10, 0),
            ("rocm4_5_level4_spack27535_malloc.log", 11, 0),
            ("rocm5_4_init_level7_hip3161.log", 9, 0),
            ("rocm5_level4_vadd.log", 45, 1),
            ("rocm6_level3_mi210_triton4445.log", 10, 0),
            ("rocm7_level5_pytorch_window1.log", 26, 0),
        ],
    )
    def test_recorded_lines(self, shared: Path, file: str, lines: int, others: int) -> None:
        problems = readers.read(shared / AMD / file).problems
        assert problems[0].count == lines
        assert sum(p.count for p in problems if "text of the program" in p.message) == others

    def test_recorded_launches(self, shared: Path) -> None:
        found = {
            file: [name for name, _ in submissions(readers.read(shared / AMD / file))]
            for file in (
                "rocm4_5_level4_spack27535.log",
                "rocm5_level4_vadd.log",
                "rocm6_level3_mi210_triton4445.log",
                "rocm7_level5_pytorch_window1.log",
            )
        }
        assert found["rocm4_5_level4_spack27535.log"] == [
            (
                "submission of _Z10Amplify_2diiiiP15HIP_vector_typeIdLj2EES1_PdS2_: "
                "256 x 1 x 1 workgroups of 256 x 1 x 1"
            )
        ]
        assert found["rocm5_level4_vadd.log"] == [
            "submission of _Z8vadd_hipPKfS0_Pfi: 3907 x 1 x 1 workgroups of 256 x 1 x 1"
        ]
        assert found["rocm6_level3_mi210_triton4445.log"] == ["submission of _bwd_kernel"]
        newest = found["rocm7_level5_pytorch_window1.log"]
        assert [name.rsplit(": ", 1)[1] for name in newest] == [
            "7 x 1 x 1 workgroups of 256 x 1 x 1",
            "14 x 1 x 1 workgroups of 256 x 1 x 1",
        ]

    def test_recorded_calls_and_device_work(self, shared: Path) -> None:
        vadd = readers.read(shared / AMD / "rocm5_level4_vadd.log")
        assert calls(vadd) == [
            ("hipMemcpy", 98_437_000),
            ("hipMemcpy", 331_000),
            ("__hipPushCallConfiguration", 4000),
            ("__hipPopCallConfiguration", 3000),
            ("hipLaunchKernel", 277_000),
            ("hipMemcpy", 1_034_000),
        ]
        assert len(vadd.kernels) == 0
        timed = readers.read(shared / AMD / "rocm4_5_level4_spack27535_malloc.log")
        assert (timed.kernels.start_ns.tolist(), timed.kernels.dur_ns.tolist()) == (
            [266505750277476],
            [4640],
        )
        assert calls(timed) == [("hipMalloc", 34_000), ("hipMalloc", 29_000), ("hipMalloc", 62_000)]

    def test_recorded_logs_are_listed_by_call(self, shared: Path) -> None:
        table = hotspots.listed(readers.read(shared / AMD / "rocm5_level4_vadd.log")).table()
        assert (
            table.by,
            [(row.name, row.category, row.calls, row.total_ns) for row in table.rows],
        ) == (
            "call",
            [
                ("hipMemcpy", "hip", 3, 99_802_000),
                ("hipLaunchKernel", "hip", 1, 277_000),
                ("submission of _Z8vadd_hipPKfS0_Pfi", "submission", 1, 6000),
                ("__hipPushCallConfiguration", "hip", 1, 4000),
                ("__hipPopCallConfiguration", "hip", 1, 3000),
            ],
        )
        timed = readers.read(shared / AMD / "rocm4_5_level4_spack27535_malloc.log")
        assert hotspots.listed(timed).table().by == "kernel"
        assert [(row.name, row.calls, row.total_ns) for row in hotspots.by_call(timed).rows] == [
            ("hipMalloc", 3, 125_000)
        ]


class TestMiopenLog:
    def test_stamped_lines_are_counted_by_function(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "miopen.log",
            "@1000 MIOpen(HIP): Info [Measure] 1 ms",
            "@2000 MIOpen(HIP): Info [Measure] 2 ms",
            "@2500 MIOpen(HIP): Info2 [SaveBinary] x",
            "@3000 MIOpen(HIP): a call's argument",
        )
        table = hotspots.listed(trace).table()
        assert (table.by, {row.category for row in table.rows}) == ("call", {"log"})
        assert [(row.name, row.calls) for row in table.rows] == [
            ("MIOpen Call a call's argument", 1),
            ("MIOpen Info [Measure]", 2),
            ("MIOpen Info2 [SaveBinary]", 1),
        ]

    def test_stamped_lines_are_marks(self, tmp_path: Path) -> None:
        trace = read(
            tmp_path / "miopen.log",
            f"{miopen_log.STAMP}1000 MIOpen(HIP): Info [get_device_name] Raw device name: gfx942",
            "@2000 77 MIOpen(HIP): Command [LogCmdConvolution] ./bin/MIOpenDriver conv -n 1",
            "@2500 MIOpen(HIP): Info2 [SaveBinary] x",
            "@3000 PASSED!",
        )
        assert trace.sources[0].clock is ClockDomain.MONOTONIC
        assert trace.marks.start_ns.tolist() == [1000, 2000, 2500]
        assert trace.marks.tid.tolist() == [NULL, 77, NULL]
        assert (
            trace.strings.decode(trace.marks.name)[0]
            == "MIOpen Info [get_device_name] Raw device name: gfx942"
        )
        assert ("command", "./bin/MIOpenDriver conv -n 1") in trace.sources[0].details
        assert {p.count for p in trace.problems} == {3, 1}
        assert any("compiled or tuned" in p.message for p in trace.problems)

    @pytest.mark.parametrize(
        "text",
        [
            "MIOpen(OpenCL): Warning [F] w",
            "MIOpen(HIP)    0.125: Warning [F] w",
            "MIOpen(HIP): Warning [F] w",
        ],
    )
    def test_forms_of_a_line(self, text: str) -> None:
        lines, others = miopen_log.parse_lines(text.splitlines())
        assert others == 0
        assert [(found.level, found.function, found.text) for found in lines] == [
            ("Warning", "F", "w")
        ]

    def test_argument_blocks_of_calls(self) -> None:
        lines, _ = miopen_log.parse_lines(
            [
                "MIOpen(HIP): miopenStatus_t miopenCreate(miopenHandle_t *){",
                "MIOpen(HIP): \thandle = 0x1",
                "MIOpen(HIP): }",
            ]
        )
        assert [found.level for found in lines] == ["Call"] * 3

    @pytest.mark.parametrize(
        ("file", "levels", "others"),
        [
            ("execution_summary_rocm_libraries4346.log", {"Info": 2}, 0),
            ("gfx1150_info2_miopen3860.log", {"Info": 9, "Info2": 6}, 0),
            ("gfx942_info_pr3522.log", {"Info": 9}, 3),
        ],
    )
    def test_recorded_lines(
        self, shared: Path, file: str, levels: dict[str, int], others: int
    ) -> None:
        trace = readers.read(shared / MIOPEN / file)
        assert trace.sources[0].clock is ClockDomain.UNKNOWN
        assert not any(np.any(len(table)) for _, table in trace.tables())
        assert dict(trace.sources[0].details) == {
            f"lines of level {level}": str(count) for level, count in levels.items()
        }
        assert sum(p.count for p in trace.problems if "text of the program" in p.message) == others

    def test_other_text_is_no_log(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no known trace format"):
            read(tmp_path / "out.log", "MIOpenDriver conv -n 1", "done")

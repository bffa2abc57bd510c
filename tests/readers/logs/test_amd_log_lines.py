"""Records of a HIP log that share a line, go on in the next one, or have forms of newer releases;
and numbers that no machine writes.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.readers.logs.amd_log_lines import begins_entry, records
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from tests.readers.logs.test_runtime_logs import calls, line, read, submissions

WHO = "[pid:7 tid: 0x00a1b] "
NAME = "_ZN2at6native6legacy18elementwise_kernelILi512ELi1EZNS0_15gpu_kernel_implEENKUlvE0_EviT1_"
PACKET = (
    "SWq=0x1, HWq=0x2, id=1, Dispatch Header = 0x1502 (type=2, barrier=1, acquire=2, release=2), "
    "setup=3, grid=[1024, 6, 1], workgroup=[256, 2, 1], private_seg_size=0, group_seg_size=0, "
    "kernel_obj=0x73e18aa72f80, kernarg_address=0x73, completion_signal=0x0, correlation_id=0, "
    "rptr=1, wptr=1"
)
LAUNCH = (
    line(10, WHO, " hipLaunchKernel ( 0x14b5, {4,3,1}, {256,2,1}, 0x14b2, 0, stream:<null> ) "),
    line(12, WHO, f"ShaderName : {NAME}"),
    line(15, WHO, PACKET, 5),
    line(33, WHO, "hipLaunchKernel: Returned hipSuccess : "),
)
SHAPE = "4 x 3 x 1 workgroups of 256 x 2 x 1"


def counts(trace: Trace) -> dict[str, int]:
    """Problems by the words that tell them apart."""
    words = (
        "joined",
        "one by one",
        "without a time",
        "before that",
        "text of the program",
        "not seen",
        "follow no kernel name",
    )
    return {
        word: problem.count
        for problem in trace.problems
        for word in words
        if word in problem.message
    }


def rows(width: int, *lines: str) -> list[str]:
    """The lines as a terminal shows them, each row filled with blanks."""
    return [
        text[begin : begin + width].ljust(width)
        for text in lines
        for begin in range(0, len(text), width)
    ]


def is_the_launch(trace: Trace) -> bool:
    return (calls(trace), submissions(trace)) == (
        [("hipLaunchKernel", 23_000)],
        [(f"submission of {NAME}: {SHAPE}", 3_000)],
    )


@pytest.mark.parametrize("filled", [True, False], ids=["filled", "stripped"])
@pytest.mark.parametrize("width", range(88, 260, 9))
def test_a_copied_terminal_of_any_width(tmp_path: Path, width: int, filled: bool) -> None:
    wrapped = rows(width, *LAUNCH)
    if not filled:
        wrapped = [row.rstrip() for row in wrapped]
    trace = read(tmp_path / "hip.log", *wrapped)
    assert is_the_launch(trace), (calls(trace), submissions(trace))
    assert counts(trace).get("joined", 0) == len(wrapped) - len(LAUNCH)
    assert "text of the program" not in counts(trace)


@pytest.mark.parametrize("per_line", [2, 3, 4])
def test_rows_of_a_terminal_that_were_copied_without_their_line_ends(
    tmp_path: Path, per_line: int
) -> None:
    wrapped = rows(228, *LAUNCH)
    text = ["".join(wrapped[at : at + per_line]) for at in range(0, len(wrapped), per_line)]
    trace = read(tmp_path / "hip.log", *text)
    assert submissions(trace) == [(f"submission of {NAME}: {SHAPE}", 3_000)]
    assert calls(trace) == [("hipLaunchKernel", 23_000)]


def test_the_excerpt_of_a_course_gives_its_launch(shared: Path, tmp_path: Path) -> None:
    found = [
        text
        for path in sorted((shared / "seeds").glob("*.txt"))
        if "hipLaunchKernel ( 0x14b5ec183ed0" in (text := path.read_text())
    ]
    if not found:
        pytest.skip("the shared folder has no such text")
    begin = found[0].index(":3:hip_module.cpp")
    trace = read(tmp_path / "hip.log", found[0][begin : found[0].index("```", begin)])
    (name, _), *more = submissions(trace)
    assert (more, name.rsplit(": ", 1)[1]) == ([], "32768 x 1 x 1 workgroups of 512 x 1 x 1")
    assert name.startswith("submission of _ZN2at6native6legacy18elementwise_kernel")
    assert "ENKUlvE0_clEvENKUlvE5_" in name  # where the line was cut
    assert calls(trace) == [("hipLaunchKernel", 23_000)]
    assert counts(trace) == {"joined": 2, "one by one": 3}


def test_several_writers_of_one_line(tmp_path: Path) -> None:
    other = "[pid:8 tid: 0x00c2d] "
    trace = read(
        tmp_path / "hip.log",
        "epoch 3 " + line(10, WHO, " hipFree ( 1 ) ") + line(11, other, " hipInit ( 0 ) "),
        line(14, WHO, "hipFree: Returned hipSuccess : ")
        + line(15, other, "hipInit: Returned hipSuccess : "),
    )
    assert calls(trace) == [("hipFree", 4000), ("hipInit", 4000)]
    assert trace.api.pid.tolist() == [7, 8]
    assert counts(trace) == {"one by one": 2, "text of the program": 1}


@pytest.mark.parametrize(
    "text",
    ["PASSED!", "done", "step 3 loss 0.25", "DONE", "Warning: slow", ":1:a.cpp :7 : no time here"],
)
@pytest.mark.parametrize("after", range(4))
def test_text_of_the_program_joins_no_whole_record(tmp_path: Path, text: str, after: int) -> None:
    trace = read(tmp_path / "hip.log", *LAUNCH[: after + 1], text, *LAUNCH[after + 1 :])
    assert is_the_launch(trace)
    untimed = text.startswith(("Warning", ":1:"))
    assert counts(trace) == {"without a time" if untimed else "text of the program": 1}


def test_a_launch_of_a_graph_and_a_record_without_its_place(tmp_path: Path) -> None:
    bare = ":4:" + " " * 25 + ":0   : 0000000021 us:  "
    trace = read(
        tmp_path / "hip.log",
        line(20, WHO, "Graph ShaderName : void k<int>(int), device id : 3", 5),
        line(24, WHO, PACKET.replace("id=1, ", "id=1, Graph "), 5),
        bare + "hipFree: Returned hipSuccess : : duration: 6 us",
        ":3:a.cpp                    :9   : 0000000040d us:  hipInit ( 0 ) ",
        ":3:a.cpp                    :9   : 0000000042d us:  hipInit: Returned hipSuccess : ",
    )
    assert submissions(trace) == [(f"submission of void k<int>(int): {SHAPE}", 4000)]
    assert calls(trace) == [("hipFree", 6000), ("hipInit", 2000)]
    assert trace.api.pid.tolist() == [NULL, NULL]


def test_below_level_4_the_place_of_the_ids_is_empty(tmp_path: Path) -> None:
    trace = read(
        tmp_path / "hip.log",
        line(10, " ", " hipLaunchKernel ( 0x1, {4,3,1}, {256,2,1}, 0x2, 0, stream:<null> ) "),
        line(12, " ", f"ShaderName : {NAME}"),
        line(33, " ", "hipLaunchKernel: Returned hipSuccess : : duration: 23 us"),
    )
    assert calls(trace) == [("hipLaunchKernel", 23_000)]
    assert submissions(trace) == [(f"submission of {NAME}: {SHAPE}", 21_000)]


def test_times_that_step_back_are_said_and_no_duration_is_negative(tmp_path: Path) -> None:
    trace = read(
        tmp_path / "hip.log",
        line(100, WHO, " hipFree ( 1 ) "),
        line(93, WHO, "hipFree: Returned hipSuccess : "),
        line(98, WHO, " hipInit ( 0 ) "),
        line(120, WHO, "hipInit: Returned hipSuccess : "),
    )
    assert sorted(calls(trace)) == [("hipFree", 0), ("hipInit", 22_000)]
    back = [p for p in trace.problems if "before that" in p.message]
    assert [(p.count, "by 7 us" in p.message, p.severity) for p in back] == [(2, True, "info")]


def test_a_begin_that_was_cut_off_costs_what_it_held(tmp_path: Path) -> None:
    trace = read(tmp_path / "hip.log", *LAUNCH[2:], *LAUNCH)
    assert is_the_launch(trace)
    assert counts(trace)["follow no kernel name"] == 1
    assert any("loses its begin" in p.message and p.count == 1 for p in trace.problems)


LARGE = st.integers(0, 10**40).map(str)


@given(at=LARGE, pid=LARGE, grid=LARGE, block=LARGE, start=LARGE, took=LARGE)
@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_number_is_too_large(
    tmp_path: Path, at: str, pid: str, grid: str, block: str, start: str, took: str
) -> None:
    who = f"[pid:{pid} tid:0x{took}] "
    header = f":4:a.cpp                    :9   : {at} us: {who}"
    sizes = f"grid=[{grid}, {grid}, {grid}], workgroup=[{block}, 1, 1]"
    trace = read(
        tmp_path / "hip.log",
        line(1, who, f" hipLaunchKernel ( 0x1, {{{grid},{grid},{grid}}}, {{{block},1,1}}, 0 ) "),
        f"{header}ShaderName : k",
        f"{header}Dispatch Header = 0x1 (type=2), {sizes}, completion_signal=0xa",
        f"{header}Signal = (0xa), start = {start}, end = {took}",
        f"{header}hipFree: Returned hipSuccess : : duration: {took} us",
        line(2, "", "hipMalloc: Returned hipSuccess : : duration: 1 us"),
    )
    assert ("hipMalloc", 1000) in calls(trace)
    assert all(dur >= 0 for _, dur in calls(trace) + submissions(trace))
    assert (trace.kernels.workgroups >= NULL).all()


def test_device_work_of_a_packet_that_is_no_packet_has_no_workgroups(tmp_path: Path) -> None:
    huge = "9" * 10
    trace = read(
        tmp_path / "hip.log",
        line(1, "", "ShaderName : k"),
        line(
            2,
            "",
            f"Dispatch Header = 0x1 (type=2), grid=[{huge}, {huge}, {huge}], "
            "workgroup=[1, 1, 1], completion_signal=0xa",
        ),
        line(3, "", "Signal = (0xa), start = 5, end = 9"),
    )
    assert trace.kernels.workgroups.tolist() == [NULL]
    assert trace.kernels.dur_ns.tolist() == [4]


@given(st.lists(st.sampled_from([*LAUNCH, "text", "", ":", " us: ", LAUNCH[2][:150]]), max_size=9))
def test_every_header_is_one_record(lines: list[str]) -> None:
    found: Counter[str] = Counter()
    assert len(list(records(iter(lines), found))) == sum(" : 00000000" in text for text in lines)
    others = sum(text in ("text", ":", " us: ") for text in lines)
    assert found["wrapped"] + found["other text"] == others


def test_a_whole_file_of_other_text_is_read_as_no_log(tmp_path: Path) -> None:
    path = tmp_path / "a.log"
    path.write_text("Warning: nothing\n" * 3 + line(5, "", "hipInit ( 0 )") + "\n")
    assert readers.read(path).problems[0].count == 1


@given(st.text(alphabet="hip_i( )x\n", max_size=16))
def test_a_call_before_a_bracket_is_found_as_by_a_search(rest: str):
    searched = re.compile(r"[^()]*\b_*i?hip\w+ ?\(").match(rest) is not None
    assert begins_entry(rest) == searched

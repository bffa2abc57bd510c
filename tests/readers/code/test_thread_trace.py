from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.errors import InputError
from profharness.readers.code import thread_trace
from tests.fakes.code_files import THREAD_TRACE, write_thread_trace

GEMM, RELU = 'void gemm<float, "a">(float*)', "relu(float*)"
NUMBERS = st.integers(0, 1 << 40)
ROWS = st.lists(
    st.tuples(
        st.sampled_from((GEMM, RELU)),
        st.sampled_from(("s_waitcnt vmcnt(0)", "v_add_f32 v1, v2")),
        st.sampled_from(("/a.cpp:1", "/a.cpp:2", "")),
        st.tuples(st.integers(1, 99), NUMBERS, NUMBERS, NUMBERS),
    ),
    max_size=12,
)


@settings(max_examples=30, deadline=None)
@given(ROWS)
def test_cycles_are_added_up_by_kernel_instruction_and_line(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str, str, tuple[int, int, int, int]]],
) -> None:
    written: list[tuple[object, ...]] = []
    wanted: dict[tuple[str, str, str], Counter[str]] = {}
    for address, (kernel, instruction, source, figures) in enumerate(rows):
        written += [
            (7, address, f"; {kernel}.kd", 0, 0, 0, 0, kernel),
            (7, address, instruction, *figures, source),
        ]
        wanted.setdefault((kernel, instruction, source), Counter()).update(
            dict(zip(("hits", "latency", "stall", "idle"), figures, strict=True))
        )
    path = tmp_path_factory.mktemp("trace") / "stats_ui_output_agent_2_dispatch_1.csv"
    file = thread_trace.read_code(write_thread_trace(path, written))
    assert {
        (record.kernel, record.instruction, record.source): Counter(
            hits=record.hits, latency=record.latency, stall=record.stall, idle=record.idle
        )
        for record in file.records
    } == wanted
    assert (file.method, file.problems) == ("thread_trace", ())


def test_missing_columns_are_named(tmp_path: Path) -> None:
    path = tmp_path / "stats_a.csv"
    path.write_text("Instruction,Hitcount,Latency\nv_nop,1,2\n")
    with pytest.raises(InputError, match="has no column Codeobj, Vaddr, Stall, Idle, Source"):
        thread_trace.read_code(path)


def test_rows_without_figures_are_counted(tmp_path: Path) -> None:
    path = write_thread_trace(
        tmp_path / "stats_a.csv",
        [(7, 1, "v_nop", 1, "x", 0, 0, ""), (7, 2, "v_nop", 1, 5, 0, 0, "")],
    )
    file = thread_trace.read_code(path)
    assert [record.latency for record in file.records] == [5]
    assert [(problem.severity, problem.count) for problem in file.problems] == [("error", 1)]


def test_as_a_trace_it_holds_nothing_and_says_how_to_list_it(tmp_path: Path) -> None:
    path = write_thread_trace(tmp_path / "stats_a.csv", [(7, 1, "v_nop", 1, 5, 0, 0, "")])
    trace = readers.read(path)
    assert trace.sources[0].format == thread_trace.name
    assert not any(len(table) for _, table in trace.tables())
    assert ["--by line" in problem.message for problem in trace.problems] == [True]
    assert len(THREAD_TRACE) == 8


def test_negative_figures_take_nothing_from_the_others(tmp_path: Path) -> None:
    rows = [(7, 0, "v_nop", -1, -50, 0, 0, "/a.cpp:1"), (7, 4, "v_nop", 2, 30, 0, 0, "/a.cpp:1")]
    file = thread_trace.read_code(write_thread_trace(tmp_path / "stats_a.csv", rows))
    assert [(one.hits, one.latency) for one in file.records] == [(2, 30)]
    (problem,) = file.problems
    assert (problem.severity, problem.count) == ("error", 1)
    assert "no counts" in problem.message

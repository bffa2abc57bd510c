"""One program written in every schema of rocpd gives one trace."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.cli import run_cli
from profharness.errors import InputError
from profharness.writers.perfetto import write
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocpd_schemas import LATER, UNREADABLE
from tests.fakes.rocprofv3_program import Call, GraphLaunch, Kernel, Program, Symbol, program
from tests.readers.rocprofv3.tables_spelled import spelled

SAMPLED = "sampled while kernels ran"


@pytest.mark.parametrize("schema", LATER)
def test_a_schema_says_what_the_first_one_says(tmp_path: Path, schema: str) -> None:
    """LDS is no multiple of the 512 bytes to which later views round it, and counters that were
    sampled stand beside the sums in files that can have them: they are counted, not added.
    """
    given_ = program(3, 12)
    given_ = replace(
        given_, kernels=tuple(replace(k, lds=k.lds + k.dispatch) for k in given_.kernels)
    )
    first = readers.read(write_rocpd(tmp_path / "first.db", given_))
    later = readers.read(write_rocpd(tmp_path / "later.db", given_, schema=schema))
    assert spelled(later) == spelled(first)
    assert later.devices == first.devices
    assert later.sources[0].details == (("schema", schema.partition("-")[0]),)
    values = sum(len(parts) for k in given_.kernels for _, parts in k.counters)
    sampled = [problem.count for problem in later.problems if SAMPLED in problem.message]
    assert sampled == ([values] if schema >= "3.0.3" else [])
    assert len(later.problems) == len(sampled)


@pytest.mark.parametrize("schema", ["3.0.3", "4.1.0"])
def test_of_several_processes_each_keeps_its_own(tmp_path: Path, schema: str) -> None:
    both = program(1, 6, pid=16, host="a"), program(2, 8, pid=17, host="b")
    first = readers.read(write_rocpd(tmp_path / "first.db", *both))
    later = readers.read(write_rocpd(tmp_path / "later.db", *both, schema=schema))
    assert spelled(later) == spelled(first)
    assert [int((later.kernels.source == n).sum()) for n in (0, 1)] == [6, 8]
    assert [p.message for p in later.problems if SAMPLED not in p.message] == []


TIMES = st.integers(1, 1 << 62)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """A few kernels and calls of any times, sizes and places."""
    numbers = st.integers(1, 1 << 20)
    kernels = []
    for dispatch in range(1, draw(st.integers(0, 4)) + 1):
        start = draw(TIMES)
        kernels.append(
            Kernel(
                10,
                start,
                start + draw(st.integers(0, 1 << 40)),
                draw(st.sampled_from((2, 3))),
                dispatch,
                dispatch,
                (draw(numbers), draw(numbers), 1),
                (64, draw(st.integers(1, 16)), 1),
                lds=draw(numbers),
                counters=(("SQ_WAVES", (float(draw(numbers)), 1.0)),) * draw(st.integers(0, 1)),
            )
        )
    calls = tuple(
        Call("HIP_RUNTIME_API", "hipLaunchKernel", start, start + length, number, 7)
        for number, (start, length) in enumerate(
            draw(st.lists(st.tuples(TIMES, st.integers(1, 1 << 40)), max_size=3)), 1
        )
    )
    return Program(
        symbols=(Symbol(10, "gemm", static_lds=draw(numbers)),),
        kernels=tuple(kernels),
        calls=calls,
    )


@settings(max_examples=15, deadline=None)
@given(programs(), st.sampled_from(("3.0.5", "4.1.0")))
def test_any_small_program_is_the_same_in_every_schema(
    tmp_path_factory: pytest.TempPathFactory, given_: Program, schema: str
) -> None:
    folder = tmp_path_factory.mktemp("schemas")
    first = readers.read(write_rocpd(folder / "first.db", given_))
    later = readers.read(write_rocpd(folder / "later.db", given_, schema=schema))
    assert spelled(later) == spelled(first)
    assert later.kernels.start_ns.tolist() == [kernel.start for kernel in given_.kernels]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ("4", "its texts are compressed (lz4-frame-v1)"),
        ("4.0.0", "its records keep their times in a table of their own (rocpd_timestamp)"),
    ],
)
def test_a_schema_that_cannot_be_read_is_refused_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], schema: str, reason: str
) -> None:
    assert schema in UNREADABLE
    path = write_rocpd(tmp_path / "a.db", program(1, 2), schema=schema)
    assert run_cli(["hotspots", str(path)]) == 4
    answer = capsys.readouterr()
    assert answer.out == ""
    said = " ".join(answer.err.split())
    assert f"schema version {schema}, which is not read: {reason}" in said
    assert "rocpd convert -f csv" in said


def test_a_number_that_nobody_knows_is_read_by_its_tables(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, 4))
    with sqlite3.connect(path) as connection:
        name = connection.execute(
            "SELECT name FROM sqlite_master WHERE name LIKE 'rocpd_metadata_0%'"
        ).fetchone()[0]
        connection.execute(f"""UPDATE "{name}" SET value = '7.2' WHERE tag = 'schema_version'""")
    connection.close()
    trace = readers.read(path)
    assert (len(trace.kernels), trace.sources[0].details) == (4, (("schema", "7.2"),))


def test_a_view_without_what_is_needed_is_refused_with_its_column(tmp_path: Path) -> None:
    path = write_rocpd(tmp_path / "a.db", program(1, 2))
    with sqlite3.connect(path) as connection:
        connection.execute("DROP VIEW kernels")
        connection.execute("CREATE VIEW kernels AS SELECT id, guid FROM rocpd_kernel_dispatch")
    connection.close()
    with pytest.raises(InputError, match="its view kernels has no start"):
        readers.read(path)


@pytest.mark.parametrize("schema", ["3.0.2", "3.0.5", "4.1.0"])
def test_kernels_know_the_graph_that_they_are_nodes_of(tmp_path: Path, schema: str) -> None:
    """Of several processes each has its own; launches are shown, and count as no host calls."""
    one, two = program(1, 4, pid=16, counters=False), program(2, 3, pid=17, counters=False)
    one = replace(
        one,
        kernels=tuple(replace(k, graph=(5, 0, 6, 5)[n]) for n, k in enumerate(one.kernels)),
        graphs=(GraphLaunch(5, 100, 200, 2, 7), GraphLaunch(6, 300, 300, 1, 8)),
        calls=(),
    )
    trace = readers.read(write_rocpd(tmp_path / "a.db", one, two, schema=schema))
    first = {k.start: k.graph or -1 for k in one.kernels} | {k.start: -1 for k in two.kernels}
    kernels = trace.kernels
    assert dict(zip(kernels.start_ns.tolist(), kernels.graph.tolist(), strict=True)) == first
    launches = trace.api.take(np.flatnonzero(trace.api.domain == trace.strings.find("graph")))
    assert list(
        zip(
            trace.strings.decode(launches.name),
            launches.start_ns.tolist(),
            launches.dur_ns.tolist(),
            launches.tid.tolist(),
            launches.pid.tolist(),
            strict=True,
        )
    ) == [("graph 5: 2 kernels", 100, 100, 7, 16), ("graph 6: 1 kernel", 300, 0, 8, 16)]
    assert [source.has_host_calls for source in trace.sources] == [False, True]
    write(trace, tmp_path / "merged.pftrace")
    back = readers.read(tmp_path / "merged.pftrace")
    assert sorted(back.kernels.graph.tolist()) == sorted(kernels.graph.tolist())


def test_a_database_of_rocprof_sys_has_its_functions_as_operators(tmp_path: Path) -> None:
    """Its categories have names of their own; samples of call stacks are counted."""
    given_ = Program(
        symbols=program().symbols,
        kernels=program(1, 4, counters=False).kernels,
        calls=(
            Call("host", "main", 10, 100, 1, 7),
            Call("host", "step", 20, 60, 2, 7),
            Call("python", "train.py:3", 30, 40, 3, 7),
            Call("host", "elsewhere", 30, 40, 4, 8),
            Call("rocm_hip_api", "hipLaunchKernel", 32, 35, 5, 7),
            Call("rocm_marker_api", "roctxRangePushA", 31, 50, 6, 7, "forward"),
            Call("timer_sampling", "main.cpp:9", 33, 33, 7, 7),
            Call("timer_sampling", "main.cpp:9", 40, 44, 8, 7),
            Call("device_busy_gfx", "GPU busy", 34, 34, 9, 7),
        ),
    )
    trace = readers.read(write_rocpd(tmp_path / "rocpd-7.db", given_))
    say = trace.strings.decode
    functions = zip(say(trace.ops.name), trace.ops.depth.tolist(), trace.ops.tid, strict=True)
    assert sorted(functions) == [
        ("elsewhere", 0, 8),
        ("main", 0, 7),
        ("step", 1, 7),
        ("train.py:3", 2, 7),
    ]
    assert list(zip(say(trace.api.domain), say(trace.api.name), strict=True)) == [
        ("hip", "hipLaunchKernel")
    ]
    assert say(trace.marks.name) == ["forward"]
    assert [(p.severity, p.count) for p in trace.problems] == [("info", 3)]
    assert "samples of call stacks and devices 3" in trace.problems[0].message

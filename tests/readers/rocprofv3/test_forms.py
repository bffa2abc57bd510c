"""One program written in every form that rocprofv3 has gives one trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.time.linking import link_copies, link_kernels
from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import GENERATIONS, Generation, write_csv, write_json
from tests.fakes.rocprofv3_program import Program, program
from tests.readers.rocprofv3.tables_spelled import spelled, totals

# what CSV does not have: the host, and LDS as static and dynamic, and sizes of copies
NOT_IN_CSV = frozenset({"host", "lds_bytes", "lds_dynamic_bytes", "bytes"})
NOT_BEFORE_7 = frozenset({"vgpr", "accum_vgpr", "sgpr", "stream"})


def csv_trace(folder: Path, given: Program, generation: Generation, suffix: str = ".csv") -> Trace:
    return rocprofv3_csv.read_set(write_csv(folder / generation, given, generation, suffix=suffix))


def json_trace(folder: Path, given: Program) -> Trace:
    return readers.read(write_json(folder / "4711_results.json", given))


def rocpd_trace(folder: Path, given: Program) -> Trace:
    return readers.read(write_rocpd(folder / "4711_results.db", given))


def test_json_and_rocpd_say_the_same_in_every_column(tmp_path: Path) -> None:
    for seed in range(4):
        given = program(seed)
        from_json, from_rocpd = json_trace(tmp_path, given), rocpd_trace(tmp_path, given)
        assert spelled(from_json) == spelled(from_rocpd)
        assert from_json.devices == from_rocpd.devices
        assert from_json.problems == from_rocpd.problems == ()
        assert [(s.host, s.pid, s.clock) for s in from_json.sources] == [
            ("node1", 4711, ClockDomain.BOOTTIME)
        ]


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv_says_the_same_as_far_as_it_goes(
    tmp_path: Path, generation: Generation, suffix: str
) -> None:
    given = program(2)
    trace = csv_trace(tmp_path, given, generation, suffix)
    without = (
        NOT_IN_CSV
        | (NOT_BEFORE_7 if generation.startswith("6") else frozenset())
        | ({"tid", "dispatch"} if generation == "6.2" else frozenset())
    )
    reference = json_trace(tmp_path, given)
    found, wanted = spelled(trace, without=without), spelled(reference, without=without)
    if generation == "6.2":  # this version's copies have shorter names, and its kernels no thread
        found["copies"] = [
            tuple(str(cell).removeprefix("MEMORY_COPY_") for cell in row) for row in found["copies"]
        ]
        wanted["copies"] = [
            tuple(str(cell).removeprefix("MEMORY_COPY_") for cell in row)
            for row in wanted["copies"]
        ]
    assert {name: sorted(rows) for name, rows in found.items()} == {
        name: sorted(rows) for name, rows in wanted.items()
    }
    assert (trace.sources[0].pid, trace.sources[0].clock, len(trace.sources)) == (
        4711,
        ClockDomain.BOOTTIME,
        1,
    )
    assert trace.problems == ()
    assert [
        (d.index, d.identity, d.compute_units, d.dies, d.max_clock_mhz, d.architecture)
        for d in trace.devices
    ] == [
        (d.index, d.identity, d.compute_units, d.dies, d.max_clock_mhz, d.architecture)
        for d in reference.devices
    ]


@pytest.mark.parametrize(
    "form",
    [
        json_trace,
        rocpd_trace,
        *(
            pytest.param(
                lambda folder, given, generation=generation: csv_trace(folder, given, generation),
                id=generation,
            )
            for generation in GENERATIONS
        ),
    ],
)
def test_every_form_keeps_the_program_exactly(
    tmp_path: Path, form: Callable[[Path, Program], Trace]
) -> None:
    given = program(3, 60)
    trace = form(tmp_path, given)
    names = {symbol.number: symbol.name for symbol in given.symbols}
    wanted: dict[str, tuple[int, int]] = {}
    for kernel in given.kernels:
        calls, total = wanted.get(names[kernel.symbol], (0, 0))
        wanted[names[kernel.symbol]] = (calls + 1, total + kernel.end - kernel.start)
    assert totals(trace) == wanted
    assert int(trace.kernels.start_ns.min()) == min(k.start for k in given.kernels)
    links = link_kernels(trace)
    assert links.linked.all()
    assert {trace.strings[int(code)] for code in trace.api.name[links.api]} == {"hipLaunchKernel"}
    assert {trace.strings[int(code)] for code in trace.api.name[link_copies(trace).api]} == {
        "hipMemcpyAsync"
    }
    by_start = {k.start: k for k in given.kernels}
    for row in range(len(trace.kernels)):
        kernel = by_start[int(trace.kernels.start_ns[row])]
        counts = [-(-g // s) for g, s in zip(kernel.grid, kernel.size, strict=True)]
        k = trace.kernels
        assert [
            k.workgroup_count_x[row],
            k.workgroup_count_y[row],
            k.workgroup_count_z[row],
        ] == counts
        assert k.workgroups[row] == counts[0] * counts[1] * counts[2]
        assert [k.workgroup_size_x[row], k.workgroup_size_y[row], k.workgroup_size_z[row]] == list(
            kernel.size
        )


def test_ranges_become_marks_and_directions_become_kinds(tmp_path: Path) -> None:
    trace = json_trace(tmp_path, program())
    m, say = trace.marks, trace.strings.decode
    marks = list(
        zip(
            say(m.name), say(m.kind), say(m.point), m.items.tolist(), m.dur_ns.tolist(), strict=True
        )
    )
    assert marks == [
        ("profharness.point:b4", "point", "b4", NULL, 1400),
        ("profharness.step:3:128", "step", "", 128, 1200),
        ('forward "x"', "range", "", NULL, 1000),
        ("instant", "range", "", NULL, 0),
    ]
    kinds = trace.strings.decode(trace.copies.kind)
    assert kinds == ["h2d", "d2h", "d2d", "p2p"]
    index = [
        [trace.devices[i].index if i != NULL else None for i in column]
        for column in (trace.copies.src_device, trace.copies.dst_device, trace.copies.device)
    ]
    assert index == [[None, "3", "2", "2"], ["2", None, "2", "3"], ["2", "3", "2", "3"]]
    assert trace.copies.bytes.tolist() == [1 << 20, 1 << 20 | 1, 1 << 20 | 2, 1 << 20 | 3]
    domains = set(trace.strings.decode(trace.api.domain))
    assert domains == {"hip", "hsa", "rccl"}


def test_counters_are_added_up_over_instances_and_stand_at_their_kernels(tmp_path: Path) -> None:
    given = program(5, 6)
    for trace in (
        json_trace(tmp_path, given),
        rocpd_trace(tmp_path, given),
        csv_trace(tmp_path, given, "7.0"),
        csv_trace(tmp_path, given, "6.2"),
    ):
        found = sorted(
            (int(trace.kernels.start_ns[row]), trace.strings[int(name)], float(value))
            for row, name, value in zip(
                trace.counters.kernel, trace.counters.name, trace.counters.value, strict=True
            )
        )
        assert found == sorted(
            (k.start, name, sum(parts)) for k in given.kernels for name, parts in k.counters
        )


def test_lds_is_split_where_the_form_knows_it(tmp_path: Path) -> None:
    given = program(1)
    static = {symbol.number: symbol.static_lds for symbol in given.symbols}
    for trace in (json_trace(tmp_path, given), rocpd_trace(tmp_path, given)):
        found = dict(
            zip(
                trace.kernels.start_ns.tolist(),
                zip(
                    trace.kernels.lds_bytes.tolist(),
                    trace.kernels.lds_dynamic_bytes.tolist(),
                    strict=True,
                ),
                strict=True,
            )
        )
        assert found == {
            k.start: (static[k.symbol], k.lds - static[k.symbol]) for k in given.kernels
        }
    late, early = csv_trace(tmp_path, given, "7.0"), csv_trace(tmp_path, given, "6.4")
    assert dict(
        zip(late.kernels.start_ns.tolist(), late.kernels.lds_bytes.tolist(), strict=True)
    ) == {k.start: static[k.symbol] for k in given.kernels}
    assert dict(
        zip(early.kernels.start_ns.tolist(), early.kernels.lds_bytes.tolist(), strict=True)
    ) == {k.start: k.lds for k in given.kernels}
    assert set(late.kernels.lds_dynamic_bytes.tolist()) == {NULL}

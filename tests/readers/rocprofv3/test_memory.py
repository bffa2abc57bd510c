"""Device memory, scratch memory and the kernel driver's events, in every form of rocprofv3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.time.linking import link_kernels
from profharness.readers.rocprofv3 import csv_reader
from profharness.readers.rocprofv3.memory import ALLOC, FREE, OTHER, action_of, address_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import HSA_ALLOCATED
from profharness.writers.perfetto import write
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import Generation, write_csv, write_json
from tests.fakes.rocprofv3_program import Allocation, Call, Program, program

Form = Callable[[Path, Program], Trace]


def of_csv(folder: Path, given_: Program, generation: Generation = "7.0") -> Trace:
    return csv_reader.read_set(write_csv(folder, given_, generation))


def of_json(folder: Path, given_: Program) -> Trace:
    return readers.read(write_json(folder / "4711_results.json", given_))


def of_rocpd(folder: Path, given_: Program) -> Trace:
    return readers.read(write_rocpd(folder / "4711_results.db", given_))


def of_newest_rocpd(folder: Path, given_: Program) -> Trace:
    return readers.read(write_rocpd(folder / "4712_results.db", given_, schema="4.1.0"))


FORMS: tuple[Form, ...] = (of_csv, of_json, of_rocpd, of_newest_rocpd)


def held(trace: Trace) -> list[tuple[int, str, float]]:
    """(time, device, bytes), `host` for the host."""
    samples = trace.samples
    assert set(trace.strings.decode(samples.metric)) <= {HSA_ALLOCATED}
    assert (samples.at_ns == samples.until_ns).all()
    return [
        (at, "host" if place == NULL else trace.devices[place].index, value)
        for at, place, value in zip(
            samples.at_ns.tolist(), samples.device.tolist(), samples.value.tolist(), strict=True
        )
    ]


def events(trace: Trace, domain: str) -> list[tuple[str, int, int, int]]:
    """(name, start, duration, thread) of records of a domain that stand among host calls."""
    api = trace.api.take(np.flatnonzero(trace.api.domain == trace.strings.find(domain)))
    return sorted(
        zip(
            trace.strings.decode(api.name),
            api.start_ns.tolist(),
            api.dur_ns.tolist(),
            api.tid.tolist(),
            strict=True,
        )
    )


def said(trace: Trace) -> str:
    return "; ".join(problem.message.partition("left out: ")[2] for problem in trace.problems)


# a device, another, the host; a release of memory from before, and one of nothing
MEMORY = (
    Allocation("ALLOC", "REAL", 10, 20, 4096, 2, 1, 7, 0x1000),
    Allocation("ALLOC", "VIRTUAL", 15, 30, 64, 3, 2, 7, 0x2000),
    Allocation("FREE", "REAL", 35, 38, 0, 2, 3, 7, 0x9000),
    Allocation("ALLOC", "REAL", 40, 45, 100, 0, 4, 7, 0x3000),
    Allocation("FREE", "REAL", 50, 80, 0, 2, 5, 8, 0x1000),
    Allocation("ALLOC", "REAL", 55, 60, 1000, 2, 6, 7, 0x1000),  # before the release has returned
    Allocation("FREE", "REAL", 61, 62, 0, 2, 7, 7, 0),
    Allocation("FREE", "VIRTUAL", 70, 75, 0, 3, 8, 7, 0x2000),
)
SCRATCH = (
    Allocation("ALLOC", "SCRATCH", 70, 80, 256, 2, 9, 7),
    Allocation("RECLAIM", "SCRATCH", 90, 95, 0, 2, 10, 7),
    Allocation("FREE", "SCRATCH", 96, 99, 0, 2, 11, 7),
)


@pytest.mark.parametrize("form", FORMS)
def test_memory_is_held_from_its_allocation_to_its_release(tmp_path: Path, form: Form) -> None:
    trace = form(tmp_path, replace(program(1, 4, counters=False), allocations=MEMORY))
    assert held(trace) == [
        (20, "2", 4096.0),
        (30, "3", 64.0),
        (45, "host", 100.0),
        (50, "2", 0.0),
        (60, "2", 1000.0),
        (70, "3", 0.0),
    ]
    assert said(trace) == "releases of memory that was allocated before the recording 1"


@pytest.mark.parametrize("form", FORMS)
def test_scratch_memory_is_shown_with_its_names_and_counts_as_no_call(
    tmp_path: Path, form: Form
) -> None:
    given_ = replace(program(1, 4, counters=False), allocations=SCRATCH)
    without_calls = replace(given_, calls=())
    for one in (given_, without_calls):
        trace = form(tmp_path, one)
        assert events(trace, "scratch") == [
            ("SCRATCH_MEMORY_ALLOC", 70, 10, 7),
            ("SCRATCH_MEMORY_ASYNC_RECLAIM", 90, 5, 7),
            ("SCRATCH_MEMORY_FREE", 96, 3, 7),
        ]
        assert len(trace.samples) == 0
        assert said(trace) == ""
        assert trace.sources[0].has_host_calls is bool(one.calls)
        links = link_kernels(trace)
        assert links.has_calls.all() == links.linked.all() == bool(one.calls)


def test_events_of_the_kernel_driver_are_shown_with_their_names(tmp_path: Path) -> None:
    """rocpd alone holds them; one without length is an instant."""
    given_ = replace(
        program(1, 4, counters=False),
        calls=(
            Call("KFD_EVENT_PAGE_MIGRATE", "KFD_PAGE_MIGRATE_PREFETCH", 50, 60, 1, 7),
            Call("KFD_EVENT_DROPPED_EVENTS", "KFD_DROPPED_EVENTS", 70, 70, 2, 7),
        ),
    )
    trace = of_rocpd(tmp_path, given_)
    assert [row[1:] for row in events(trace, "kfd")] == [(70, 0, 7), (50, 10, 7)]
    assert events(trace, "kfd")[1][0] == "KFD_PAGE_MIGRATE_PREFETCH"
    assert not trace.sources[0].has_host_calls
    assert not link_kernels(trace).has_calls.any()


STEPS = st.lists(
    st.tuples(st.integers(1, 5), st.integers(0, 1 << 40), st.sampled_from((0, 2, 3))), max_size=30
)


@settings(max_examples=25, deadline=None)
@given(STEPS, st.sampled_from(FORMS[:3]))
def test_what_is_held_is_the_sum_of_what_is_open(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int]], form: Form
) -> None:
    """Addresses are taken and given back in turn; each time the sum over what is open is right."""
    records, open_, wanted = [], {}, []
    for number, (address, size, agent) in enumerate(steps, 1):
        place = {0: "host"}.get(agent, str(agent))
        takes = address not in open_
        records.append(
            Allocation(
                "ALLOC" if takes else "FREE",
                "REAL",
                10 * number,
                10 * number + 5,
                size if takes else 0,
                agent if takes else 2,
                number,
                7,
                address,
            )
        )
        if takes:
            open_[address] = (place, size)
        else:
            place, _ = open_.pop(address)
        total = sum(bytes_ for where, bytes_ in open_.values() if where == place)
        wanted.append((10 * number + (5 if takes else 0), place, float(total)))
    trace = form(
        tmp_path_factory.mktemp("memory"),
        replace(program(1, 2, counters=False), allocations=tuple(records)),
    )
    assert held(trace) == wanted
    assert said(trace) == ""


@pytest.mark.parametrize(
    ("operation", "action"),
    [
        ("MEMORY_ALLOCATION_ALLOCATE", ALLOC),
        ("ROCPROFILER_MEMORY_ALLOCATION_VMEM_ALLOCATE", ALLOC),
        ("ALLOC", ALLOC),
        ("MEMORY_ALLOCATION_VMEM_FREE", FREE),
        ("FREE", FREE),
        ("REALLOC", OTHER),
        ("", OTHER),
    ],
)
def test_an_operation_takes_or_gives_back(operation: str, action: int) -> None:
    assert action_of(operation) == action


@pytest.mark.parametrize(
    ("text", "number"),
    [("0x7f00", 0x7F00), ("12", 12), ("", NULL), ("soon", NULL), (str(1 << 63), NULL)],
)
def test_an_address_is_a_number(text: str, number: int) -> None:
    assert address_of(text) == number


def test_records_that_say_too_little_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "1_memory_allocation_trace.csv"
    path.write_text(
        "Kind,Operation,Agent_Id,Start_Timestamp,End_Timestamp\n"
        "MEMORY_ALLOCATION,MEMORY_ALLOCATION_ALLOCATE,2,1,2\n"
        "MEMORY_ALLOCATION,MEMORY_ALLOCATION_FREE,,3,4\n"
    )
    trace = readers.read(path)
    assert (len(trace.samples), said(trace)) == (0, "memory records that say too little 2")


def test_the_merged_trace_shows_memory_scratch_and_driver(tmp_path: Path) -> None:
    driver = Call("KFD_EVENT_PAGE_MIGRATE", "KFD_PAGE_MIGRATE_PREFETCH", 50, 60, 1, 7)
    given_ = replace(
        program(1, 4, counters=False), allocations=(*MEMORY, *SCRATCH), calls=(driver,)
    )
    trace = of_rocpd(tmp_path, given_)
    write(trace, tmp_path / "merged.pftrace")
    back = readers.read(tmp_path / "merged.pftrace")
    for domain in ("scratch", "kfd"):
        assert events(back, domain) == events(trace, domain)
    assert sorted(held(back)) == sorted(held(trace))
    assert b"Memory through HSA" in (tmp_path / "merged.pftrace").read_bytes()


def test_addresses_of_joined_processes_are_apart(tmp_path: Path) -> None:
    """As `rocpd convert` writes them: the first column tells processes apart."""
    path = tmp_path / "out_memory_allocation_trace.csv"
    head = "Guid,Kind,Operation,Agent_Id,Allocation_Size,Address,Start_Timestamp,End_Timestamp"
    rows = [
        "a,M,MEMORY_ALLOCATION_ALLOCATE,2,100,0x10,1,2",
        "b,M,MEMORY_ALLOCATION_ALLOCATE,3,50,0x10,3,4",
        "a,M,MEMORY_ALLOCATION_FREE,,0,0x10,5,6",
        "b,M,MEMORY_ALLOCATION_FREE,,0,0x10,7,8",
    ]
    path.write_text("\n".join((head, *rows, "")))
    trace = readers.read(path)
    assert sorted(held(trace)) == [(2, "2", 100.0), (4, "3", 50.0), (5, "2", 0.0), (7, "3", 0.0)]
    assert said(trace) == ""

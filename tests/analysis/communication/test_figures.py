"""Collectives: exposed and overlapped time, bandwidths, and late ranks, on traces whose answer is
known, and on recorded ones.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.communication.collectives import (
    Arrivals,
    arrivals,
    bus_factor,
    message_bytes,
)
from profharness.analysis.communication.figures import communication, summarise
from profharness.analysis.communication.matching import by_value, matched
from profharness.analysis.communication.records import Communication
from profharness.analysis.communication.skew import skew
from profharness.analysis.communication.straggler import straggler
from profharness.analysis.parts import combine, part
from profharness.analysis.summarise import summarise_point, summarise_trace
from profharness.analysis.time.steps import everything
from profharness.report.json import metrics_json
from profharness.report.page import html
from profharness.report.tables import communication as shown
from profharness.trace.collectives import Collective, encode, normalised
from profharness.trace.model import ClockDomain, Device, Source
from profharness.understand.many.figures import summarise_files
from tests.analysis.scene import Scene
from tests.readers.kineto.kineto_files import document, kernel, launch, op, write
from tests.steps import calls_of

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
MS = 1_000_000


def rank_file(
    folder,
    rank,
    starts,
    ends,
    *,
    world=2,
    offset_us=0,
    elements=1_000_000,
    group=None,
    host_op=False,
):
    """One rank's Kineto file: an all-reduce from each start to each end (us), with a kernel of
    compute in between.
    """
    ranks = str(list(range(world)))
    events = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        told = {
            "Collective_name": "allreduce",
            "In_msg_nelems": elements,
            "Out_msg_nelems": elements,
            "dtype": "Float",
            "Group_size": world,
            "Process_Group_Ranks": group or ranks,
        }
        begin = start + offset_us
        events += [
            op("record_param_comms", begin - 8, 6, 1000 + number, **(told if host_op else {})),
            launch("cudaLaunchKernelExC", begin - 5, 2, 50 + number),
            kernel(
                REDUCE,
                begin,
                end - start,
                stream=20,
                correlation=50 + number,
                External_id=1000 + number,
                **({} if host_op else told),
            ),
            launch("cudaLaunchKernel", end + offset_us + 1, 2, 500 + number),
            kernel("gemm", end + offset_us + 5, 10, correlation=500 + number),
        ]
    return write(
        folder / f"rank{rank}.json",
        document(events, distributedInfo={"rank": rank, "world_size": world, "backend": "nccl"}),
    )


def in_step(count, late, by=300, period=2000, length=200, world=4):
    """Starts and ends (us) of `count` collectives of all ranks: `late(call)` is the rank that comes
    `by` us after the others.
    """
    starts = np.full((world, count), 0.0)
    for call in range(count):
        starts[:, call] = 10_000 + call * period
        starts[late(call), call] += by
    ends = starts.max(axis=0) + length
    return starts.astype(int), np.repeat(ends[None, :], world, axis=0).astype(int)


def files(folder, starts, ends, **more):
    return [
        rank_file(
            folder, rank, starts[rank].tolist(), ends[rank].tolist(), world=len(starts), **more
        )
        for rank in range(len(starts))
    ]


class TestOverRanks:
    def test_who_is_late_who_waits_and_how_long(self, tmp_path):
        starts, ends = in_step(20, late=lambda call: 2 if call % 10 else 0)
        summary = summarise_files(files(tmp_path, starts, ends))
        found = summary.communication.skew
        assert (found.ranks, found.matched, found.unmatched, found.noticeable) == (4, 20, 0, 20)
        assert (found.median_ns, found.max_ns) == (300_000, 300_000)
        rows = {row.rank: row for row in found.rows}
        assert {name: row.last for name, row in rows.items()} == {
            "rank 0": 2,
            "rank 1": 0,
            "rank 2": 18,
            "rank 3": 0,
        }
        assert {name: row.wait_ns for name, row in rows.items()} == {
            "rank 0": 18 * 300_000,
            "rank 1": 20 * 300_000,
            "rank 2": 2 * 300_000,
            "rank 3": 20 * 300_000,
        }
        (told,) = [one for one in summary.findings if one.id == "straggler"]
        assert told.figures["rank"] == "rank 2"
        assert told.severity == "warning"
        assert "straggler" not in [
            one.id for one in summarise_files(files(tmp_path, starts[:1], ends[:1])).findings
        ]

    def test_bandwidth_is_of_the_transfer_not_of_the_wait(self, tmp_path):
        starts, ends = in_step(8, late=lambda call: call % 4)
        (row,) = summarise_files(files(tmp_path, starts, ends)).communication.collectives
        assert (row.kind, row.bytes, row.ranks, row.calls, row.group_size) == (
            "all_reduce",
            4_000_000,
            4,
            32,
            4,
        )
        assert row.transfer_ns == 200_000
        assert row.algorithm_bandwidth == pytest.approx(4e6 / 200e-6)
        assert row.bus_bandwidth == pytest.approx(row.algorithm_bandwidth * 2 * 3 / 4)
        assert row.mean_ns == pytest.approx((3 * 500_000 + 200_000) / 4)

    def test_clocks_that_disagree_are_put_together_by_the_common_ends(self, tmp_path):
        starts, ends = in_step(12, late=lambda call: 1, world=2)
        paths = [
            rank_file(
                tmp_path,
                rank,
                starts[rank].tolist(),
                ends[rank].tolist(),
                offset_us=rank * 7_000_000,
            )
            for rank in range(2)
        ]
        found = summarise_files(paths).communication.skew
        assert (found.median_ns, found.matched) == (300_000, 12)
        assert "7.000 s apart" in found.aligned

    def test_a_late_rank_by_chance_is_no_straggler(self, tmp_path):
        starts, ends = in_step(24, late=lambda call: call % 4)
        summary = summarise_files(files(tmp_path, starts, ends))
        assert summary.communication.skew.wait_share > 0.05
        assert "straggler" not in [one.id for one in summary.findings]

    def test_what_only_the_operator_says_is_used(self, tmp_path):
        starts, ends = in_step(3, late=lambda call: 0)
        (row,) = summarise_files(
            files(tmp_path, starts, ends, host_op=True)
        ).communication.collectives
        assert (row.bytes, row.dtype, row.group_size) == (4_000_000, "Float", 4)

    def test_sequences_that_disagree_are_not_matched(self, tmp_path):
        starts, ends = in_step(6, late=lambda call: 0, world=2)
        one = rank_file(tmp_path, 0, starts[0].tolist(), ends[0].tolist(), elements=100)
        two = rank_file(tmp_path, 1, starts[1].tolist(), ends[1].tolist(), elements=200)
        found = summarise_files([one, two]).communication
        assert found.skew is None
        assert "agree in kind and order" in found.needs

    def test_groups_are_matched_apart(self, tmp_path):
        starts, ends = in_step(4, late=lambda call: 0, world=4)
        paths = [
            rank_file(
                tmp_path,
                rank,
                starts[rank].tolist(),
                ends[rank].tolist(),
                world=4,
                group=f"[{rank // 2 * 2}, {rank // 2 * 2 + 1}]",
            )
            for rank in range(4)
        ]
        found = summarise_files(paths).communication.skew
        assert (found.matched, found.ranks, found.unmatched) == (8, 4, 0)
        assert {row.rank: row.last for row in found.rows}["rank 0"] == 4

    def test_one_rank_alone_says_what_is_missing(self, tmp_path):
        starts, ends = in_step(4, late=lambda call: 0)
        summary = summarise_trace(readers.read(files(tmp_path, starts, ends)[1]), "x")
        assert summary.communication.skew is None
        assert "several ranks" in summary.communication.needs
        text = list(shown.lines(summary.communication))
        assert any("at least" in line and "bus" in line for line in text)
        assert "not measured: needs" in text[-1]


def run_of_ranks(ranks=3, calls=10, late=1, shift=0):
    """A run's trace: every rank on the run's clock, its own device, a late rank, and one rank whose
    capture began `shift` calls later.
    """
    made = Scene(
        sources=tuple(
            Source(
                f"r{rank}.json", "kineto", ClockDomain.RUN, host="h", rank=rank, pass_name="torch"
            )
            for rank in range(ranks)
        ),
        devices=tuple(
            Device(str(rank), host="h", identity=f"d{rank}", rank=rank) for rank in range(ranks)
        ),
    )
    for call in range(calls):
        for rank in range(ranks):
            if rank == ranks - 1 and call < shift:
                continue
            start = call * 10 * MS + (2 * MS if rank == late else 0)
            made.kernel(
                start, call * 10 * MS + 3 * MS, name=REDUCE, device=rank, stream=1, source=rank
            )
            made.kernel(
                call * 10 * MS + 2 * MS + MS // 2,
                call * 10 * MS + 6 * MS,
                name="gemm",
                device=rank,
                stream=0,
                source=rank,
            )
    return made.build()


class TestOfARun:
    def test_ranks_on_the_runs_clock_are_compared_as_they_are(self):
        summary = summarise_trace(run_of_ranks(), "run")
        found = summary.communication.skew
        assert (found.aligned, found.matched, found.median_ns) == ("on the run's clock", 10, 2 * MS)
        assert {row.rank: row.last for row in found.rows} == {
            "rank 0": 0,
            "rank 1": 10,
            "rank 2": 0,
        }
        assert [
            one.id for one in summary.findings if one.id in ("straggler", "exposed-communication")
        ] == ["exposed-communication", "straggler"]

    def test_exposed_and_overlapped_by_device_sum_to_the_whole(self):
        found = summarise_trace(run_of_ranks(), "run").communication
        rows = {row.device: row for row in found.devices}
        # 3 ms of each collective (1 ms of the late one), of which the last half runs beside the
        # product
        assert [(row.total_ns, row.overlapped_ns) for row in rows.values()] == [
            (30 * MS, 5 * MS),
            (10 * MS, 5 * MS),
            (30 * MS, 5 * MS),
        ]
        assert all(row.exposed_ns + row.overlapped_ns == row.total_ns for row in rows.values())

    def test_a_capture_that_began_later_is_shifted_by_the_clock(self):
        found = summarise_trace(run_of_ranks(shift=3), "run").communication.skew
        assert (found.matched, found.median_ns, found.unmatched) == (7, 2 * MS, 6)

    def test_points_and_steps_have_their_own_shares(self):
        made = Scene()
        made.kernel(0, 100, name=REDUCE, stream=1)
        made.kernel(50, 150, name="gemm")
        made.kernel(300, 400, name="gemm")
        made.mark("trial", 0, 200, point="a")
        made.mark("trial", 300, 400, point="b")
        trace = made.build()
        first, second = (summarise_point(trace, name).metrics for name in ("a", "b"))
        assert first["exposed_communication"].value == 0.25
        assert first["overlapped_communication"].value == 0.25
        assert second["communication"].value == 0

    def test_copies_between_devices(self):
        made = Scene(devices=(Device("0"), Device("1")))
        made.copy(0, 100, kind="p2p", src=0, dst=1)
        made.copy(50, 200, kind="p2p", src=0, dst=1, stream=1)
        made.copy(300, 400, kind="h2d")
        trace = made.build()
        trace = replace(trace, copies=trace.copies.with_columns(bytes=[10, 20, 40]))
        (row,) = communication(trace, everything(trace)).devices
        assert (row.peer_copies, row.peer_copy_ns, row.peer_copy_bytes, row.total_ns) == (
            2,
            200,
            30,
            0,
        )
        assert any(
            "2 copies between devices" in line
            for line in shown.lines(communication(trace, everything(trace)))
        )

    def test_every_form_of_report_shows_it(self):
        summary = summarise_trace(run_of_ranks(), "run")
        told = json.loads(metrics_json(summary))["communication"]
        assert told["skew"]["rows"][1]["last"] == 10
        page = html.render(summary)
        assert "Arrival of ranks" in page
        assert 'id="communication"' in page
        assert "Communication by device" in page


def test_without_collectives_there_is_no_section():
    made = Scene()
    made.kernel(0, 100)
    summary = summarise_trace(made.build(), "x")
    assert summary.communication is None
    assert "communication" not in json.loads(metrics_json(summary))
    assert 'id="communication"' not in html.render(summary)


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 10_000), st.integers(0, 3_000), st.booleans()),
        min_size=1,
        max_size=25,
    )
)
def test_exposed_and_overlapped_are_the_whole(rows):
    made = Scene(devices=tuple(Device(str(number)) for number in range(3)))
    for device, start, length, talks in rows:
        made.kernel(
            start,
            start + length,
            name=REDUCE if talks else "gemm",
            device=device,
            stream=int(talks),
        )
    trace = made.build()
    summary = summarise_trace(trace, "x")
    if summary.communication is None or summary.partition is None:
        return
    assert (
        sum(row.exposed_ns for row in summary.communication.devices)
        == summary.partition.exposed_communication_ns
    )
    assert (
        sum(row.total_ns for row in summary.communication.devices)
        == summary.partition.communication_ns
    )


# the formulas of nccl-tests, doc/PERFORMANCE.md, on 8 ranks of 1000 floats each
@pytest.mark.parametrize(
    ("kind", "sent", "received", "size", "factor"),
    [
        ("all_reduce", 1000, 1000, 4000, 2 * 7 / 8),
        ("all_gather", 1000, 8000, 32_000, 7 / 8),
        ("reduce_scatter", 8000, 1000, 32_000, 7 / 8),
        ("all_to_all", 8000, 8000, 32_000, 7 / 8),
        ("broadcast", 1000, 1000, 4000, 1.0),
        ("reduce", 1000, 1000, 4000, 1.0),
        ("send_recv", 1000, 1000, 4000, 1.0),
    ],
)
def test_sizes_and_factors_are_those_of_nccl_tests(kind, sent, received, size, factor):
    assert message_bytes(Collective(kind, sent, received, "Float", 8)) == size
    assert bus_factor(kind, 8) == factor


def test_what_is_not_recorded_is_not_guessed():
    assert message_bytes(Collective("all_reduce")) is None
    assert message_bytes(Collective("all_reduce", 10, 10, "Strange")) is None
    assert bus_factor("all_reduce", None) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("ncclKernel_ReduceScatter_RING_LL_Sum_half", "reduce_scatter"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv"),
        ("ncclDevKernel_Generic", "collective"),
        ("all_to_allv", "all_to_all"),
        ("ncclDevKernel_Broadcast_RING_LL", "broadcast"),
        ("reduce", "reduce"),
        ("rcclGenericKernel", "collective"),
    ],
)
def test_names(name, kind):
    assert normalised(name) == kind


def talk(found):
    return Communication(devices=(), collectives=(), skew=found)


def test_a_straggler_needs_cost_and_number():
    ranks = arrivals(run_of_ranks(calls=4))
    groups, left = matched(ranks)
    assert straggler(talk(skew(ranks, groups, left))) == ()  # too few calls
    cheap = skew(arrivals(run_of_ranks(calls=40)), *matched(arrivals(run_of_ranks(calls=40))))
    assert straggler(talk(cheap))
    from msgspec.structs import replace as changed

    assert cheap is not None
    assert straggler(talk(changed(cheap, wait_share=0.01))) == ()


def test_the_text_of_a_collective_is_stable():
    assert encode(Collective("all_reduce", 1, 1, "Float", 2, "[0, 1]")) == (
        '{"kind":"all_reduce","in_elements":1,"out_elements":1,"dtype":"Float","group_size":2,'
        '"group":"[0, 1]"}'
    )


class TestRecorded:
    """Real traces; the figures are of their own arguments and times."""

    def test_two_ranks_of_one_job(self, shared):
        paths = [shared / f"fixtures/kineto/sampled_rank{rank}of128.json.gz" for rank in (0, 1)]
        summary = combine([part(readers.read(path), str(path)) for path in paths], "both")
        found = summary.communication
        assert (found.skew.ranks, found.skew.matched, found.skew.unmatched) == (2, 10, 0)
        assert sum(row.total_ns for row in found.devices) == summary.partition.communication_ns
        assert {row.rank: row.last for row in found.skew.rows} == {
            "rank 0": 3,
            "rank 1": 7,
        }  # three of ten: no straggler
        assert [one.id for one in summary.findings if one.id == "straggler"] == []

    def test_sizes_of_a_recent_nccl_trace(self, shared):
        found = summarise_trace(
            readers.read(shared / "fixtures/kineto/a100_nccl_rank0of2.json.gz"), "x"
        ).communication
        by_size = {(row.kind, row.bytes): row.calls for row in found.collectives}
        assert by_size == {
            ("all_reduce", 8_196_000): 3,
            ("all_reduce", 31_502_336): 3,
            ("all_reduce", 26_255_360): 3,
            ("all_reduce", 26_550_272): 3,
            ("all_reduce", 9_724_160): 3,
            ("broadcast", 212_480): 3,
            ("broadcast", 424): 3,
        }
        assert all(
            row.bus_bandwidth == row.algorithm_bandwidth for row in found.collectives
        )  # two ranks: 2 (n - 1) / n is 1

    def test_rccl_kernels_take_their_size_from_the_operator(self, shared):
        found = summarise_trace(
            readers.read(shared / "fixtures/kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz"), "x"
        ).communication
        sizes = {row.bytes: row for row in found.collectives if row.kind == "all_reduce"}
        assert set(sizes) == {2 * 2_873_320, 2 * 8_816_192}
        assert sizes[2 * 8_816_192].bus_bandwidth == pytest.approx(
            sizes[2 * 8_816_192].algorithm_bandwidth * 2 * 7 / 8
        )
        # five kernels of the window's start have no launch in the file, so that nothing says what
        # they move
        assert sum(row.calls for row in found.collectives if row.bytes is None) == 5


def test_a_capture_that_began_later_is_not_guessed_without_a_clock(tmp_path):
    """Steps repeat: without a common clock several shifts fit, and none is taken."""
    starts, ends = in_step(12, late=lambda call: 0, world=2)
    paths = [
        rank_file(
            tmp_path, rank, starts[rank][rank * 3 :].tolist(), ends[rank][rank * 3 :].tolist()
        )
        for rank in range(2)
    ]
    found = summarise_files(paths).communication
    assert found.skew is None


def test_many_calls_are_matched_in_few_steps():
    ranks = arrivals(run_of_ranks(ranks=4, calls=800, shift=50))
    groups, left = matched(ranks)
    assert calls_of(lambda: matched(ranks)) < 100_000  # not a step for each pair of calls
    assert sum(len(group.start) for group in groups) == 750
    assert left == 150


@given(st.lists(st.integers(-3, 5), max_size=30))
def test_rows_of_each_value_are_those_that_a_look_through_all_finds(values: list[int]):
    column = np.array(values, np.int64)
    found = by_value(column)
    assert list(found) == sorted(set(values))
    for value, rows in found.items():
        assert rows.tolist() == np.flatnonzero(column == value).tolist()


def test_groups_and_sizes_that_are_all_different_take_steps_in_proportion():
    def of(calls: int) -> list[Arrivals]:
        texts = tuple(
            encode(Collective("all_reduce", n + 1, n + 1, "Float", 2, f"[0, 1] {n}"))
            for n in range(calls)
        )
        start, each = np.arange(calls) * 1000, np.arange(calls)
        long = np.full(calls, 500)
        return [
            Arrivals(f"r{n}", start + n, long, each, texts, common_clock=True) for n in range(2)
        ]

    steps = [calls_of(partial(summarise, [], of(calls))) for calls in (100, 400)]
    assert steps[1] < 4.5 * steps[0]
    found = summarise([], of(100))
    assert len(found.collectives) == found.skew.matched == 100
    assert {(row.calls, row.ranks, row.mean_ns, row.transfer_ns) for row in found.collectives} == {
        (2, 2, 500.0, 500.0)
    }


def test_captures_of_different_times_are_not_paired():
    """The first steps of one rank and later ones of the other: the nearest ends are far apart."""
    trace = run_of_ranks(ranks=2, calls=10)
    first, other = arrivals(trace)
    apart = replace(other, start=other.start + 20 * int(np.ptp(other.start)))
    groups, left = matched([first, apart])
    assert (groups, left) == ([], 20)
    assert len(matched([first, other])[0]) == 1


def test_waiting_in_several_calls_at_once_counts_once():
    """Two collectives of each step are handed over at its begin; the other rank is late for both
    by 90 % of the time.
    """
    texts = (
        encode(Collective("all_reduce", group="a")),
        encode(Collective("all_reduce", group="b")),
    )
    begin = np.arange(20, dtype=np.int64) * 1000
    early, late = np.repeat(begin, 2), np.repeat(begin + 900, 2)
    what = np.tile(np.array([0, 1], np.int64), 20)
    ranks = [
        Arrivals("rank 0", early, np.full(40, 950), what, texts, common_clock=True),
        Arrivals("rank 1", late, np.full(40, 50), what, texts, common_clock=True),
    ]
    told = skew(ranks, *matched(ranks))
    assert told is not None
    whole = (19_950, 19_050)
    assert told.wait_share == pytest.approx(20 * 900 / sum(whole))


def _calls(kind: str, *calls: list[tuple[int, int]]) -> list[Arrivals]:
    """Ranks on one clock with these calls, each a start and an end in µs for every rank."""
    texts = (encode(Collective(kind, group="all")),)
    return [
        Arrivals(
            f"rank {rank}",
            np.array([1000 * start for start, _ in of_rank], np.int64),
            np.array([1000 * (end - start) for start, end in of_rank], np.int64),
            np.zeros(len(of_rank), np.int64),
            texts,
            common_clock=True,
        )
        for rank, of_rank in enumerate(zip(*calls, strict=True))
    ]


@pytest.mark.parametrize(
    ("kind", "call", "waits"),
    [
        ("all_reduce", [(0, 500), (300, 500), (100, 500)], [300, 0, 200]),
        # a clock that is wrong puts the last arrival behind the end
        ("all_reduce", [(0, 250), (300, 500), (100, 500)], [250, 0, 200]),
        # rank 0 has the data and leaves before rank 2 comes
        ("broadcast", [(0, 30), (10, 540), (500, 540)], [0, 490, 0]),
        ("broadcast", [(0, 30), (10, 540), (500, 538)], [0, 490, 0]),
        # rank 0 has the data and comes last
        ("broadcast", [(400, 450), (0, 460), (100, 455)], [0, 400, 300]),
        # rank 1 passes on to rank 2, and waits for rank 0 alone
        ("broadcast", [(200, 230), (0, 260), (700, 760)], [0, 200, 0]),
        # rank 2 gathers, the others send and leave
        ("gather", [(0, 20), (600, 640), (100, 650)], [0, 0, 500]),
    ],
)
def test_no_rank_waits_longer_than_its_call_and_who_gives_does_not_wait(
    kind: str, call: list[tuple[int, int]], waits: list[int]
) -> None:
    later = [(start + 5000, end + 5000) for start, end in call]
    ranks = _calls(kind, call, later)
    told = skew(ranks, *matched(ranks))
    assert told is not None
    assert [row.wait_ns for row in told.rows] == [2 * 1000 * wait for wait in waits]
    whole = sum(int(rank.start[-1] + rank.dur[-1] - rank.start[0]) for rank in ranks)
    assert told.wait_share == pytest.approx(2 * 1000 * sum(waits) / whole)


@settings(max_examples=60)
@given(
    st.sampled_from(["all_reduce", "broadcast", "all_to_all", "gather", "send_recv"]),
    st.lists(
        st.lists(st.tuples(st.integers(0, 900), st.integers(1, 90)), min_size=3, max_size=3),
        min_size=1,
        max_size=8,
    ),
)
def test_waits_are_a_part_of_the_calls(kind: str, drawn: list[list[tuple[int, int]]]) -> None:
    calls = [
        [(1000 * at + start, 1000 * at + start + length) for start, length in call]
        for at, call in enumerate(drawn)
    ]
    ranks = _calls(kind, *calls)
    told = skew(ranks, *matched(ranks))
    if told is None:
        return
    for row, rank in zip(told.rows, ranks, strict=True):
        assert 0 <= row.wait_ns <= int(rank.dur.sum())
    assert told.wait_share <= 1


def test_both_figures_of_a_straggler_are_of_the_same_waits() -> None:
    call = [(0, 30), (0, 3020), (0, 3020), (3000, 3020)]
    calls = [[(start + 9000 * at, end + 9000 * at) for start, end in call] for at in range(30)]
    ranks = _calls("broadcast", *calls)
    told = skew(ranks, *matched(ranks))
    (found,) = straggler(Communication(devices=(), collectives=(), skew=told))
    whole = sum(int(rank.start[-1] + rank.dur[-1] - rank.start[0]) for rank in ranks)
    share = 2 * 30 * 3_000_000 / whole
    assert found.figures["wait_share"] == pytest.approx(share)
    assert (
        "rank 3 arrives last in 30 of 30 collectives with a difference; the others wait 2.000 ms "
        f"per collective on average ({100 * share:.1f} % of all ranks' time)" in found.message
    )

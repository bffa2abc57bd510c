"""Collectives on the CPU: ranges of c10d's own backends in place of kernels, from small files and a
hand-made scene.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.figures import communication_findings
from profharness.analysis.communication.matching import matched
from profharness.analysis.communication.records import Communication, Skew
from profharness.analysis.communication.skew import FEWEST, skew
from profharness.analysis.communication.straggler import straggler
from profharness.analysis.records import Figure
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.verdict.cpu import cpu_verdict
from profharness.analysis.verdict.records import Verdict
from profharness.findings import finding
from profharness.readers.kineto.comms import collective
from profharness.report.tables import communication as shown
from profharness.trace.collectives import Collective, encode
from profharness.trace.model import I64
from profharness.understand.many.figures import summarise_files
from tests.readers.kineto.kineto_files import document, event, op, write

MS = 1000
BOTH = {
    "pg_count": 1,
    "pg_config": [{"pg_name": "0", "backend_config": "cpu:gloo", "pg_size": 2, "ranks": [0, 1]}],
}


def gloo(
    name: str, ts: int, dur: int, *, dims: object = ((1000,),), kinds: object = ("float",)
) -> dict[str, object]:
    return event(
        "user_annotation", f"gloo:{name}", ts, dur, tid=900, Input_Dims=dims, Input_type=kinds
    )


def rank_file(
    folder: Path,
    rank: int,
    late_us: int,
    *,
    calls: int = 10,
    groups: Mapping[str, object] | None = None,
) -> Path:
    """Per 10 ms: an operator of 2 ms, the hand-over, and a collective from `late_us` after 3 ms
    until 7 ms, of which an operator hides the last millisecond.
    """
    events = []
    for call in range(calls):
        at = 10 * MS * call
        events += [
            op("aten::mm", at, 2 * MS, call),
            op("c10d::allreduce_", at + 3 * MS + late_us, 20, 100 + call),
            gloo("all_reduce", at + 3 * MS + late_us, 4 * MS - late_us),
            op("aten::add", at + 6 * MS, 2 * MS, 200 + call),
        ]
    return write(
        folder / f"rank{rank}.json",
        document(
            events,
            distributedInfo={
                "backend": "gloo",
                "rank": rank,
                "world_size": 2,
                **(BOTH if groups is None else groups),
            },
        ),
    )


def test_time_bytes_and_bandwidths_of_two_ranks(tmp_path: Path) -> None:
    summary = summarise_files([rank_file(tmp_path, 0, 0), rank_file(tmp_path, 1, 2 * MS)])
    found = summary.communication
    assert found is not None
    (row,) = found.collectives
    assert (row.kind, row.dtype, row.group_size, row.bytes, row.ranks, row.calls) == (
        "all_reduce",
        "Float",
        2,
        4000,
        2,
        20,
    )
    assert row.algorithm_bandwidth is not None
    assert row.transfer_ns == 2 * MS * 1000  # the late rank waits for nobody
    assert row.algorithm_bandwidth == pytest.approx(4000 / 2e-3)
    assert row.bus_bandwidth == pytest.approx(row.algorithm_bandwidth * 2 * 1 / 2)
    times = {one.rank: one for one in found.devices}
    # from 3 ms (or 5 ms) to 7 ms, of which aten::add hides one; the hand-over hides nothing
    assert {
        rank: (one.total_ns, one.exposed_ns, one.overlapped_ns) for rank, one in times.items()
    } == {0: (40_000_000, 30_000_000, 10_000_000), 1: (20_000_000, 10_000_000, 10_000_000)}
    assert all(one.on_host for one in found.devices)
    text = "\n".join(shown.lines(found))
    assert "rank 1/cpu" in text
    assert "overlapped by operators" in text


def test_the_late_rank_is_named_and_both_findings_have_their_figures(tmp_path: Path) -> None:
    summary = summarise_files(
        [rank_file(tmp_path, 0, 0, calls=20), rank_file(tmp_path, 1, 2 * MS, calls=20)]
    )
    assert summary.communication is not None
    assert summary.communication.skew is not None
    assert {row.rank: (row.last, row.wait_ns) for row in summary.communication.skew.rows} == {
        "rank 0": (0, 40 * MS * 1000),
        "rank 1": (20, 0),
    }
    told = {one.id: one for one in summary.findings}
    assert told["straggler"].figures["rank"] == "rank 1"
    window = 198 * MS * 1000  # from the first operator to the end of the last
    alone = {
        round(float(one.figures["exposed_share"]), 6)
        for one in summary.findings
        if one.id == "exposed-communication"
    }
    assert round(60_000_000 / window, 6) in alone


def test_ranks_in_step_and_short_collectives_give_no_finding(tmp_path: Path) -> None:
    events = [
        item
        for call in range(20)
        for item in (
            op("aten::mm", 10 * MS * call, 9 * MS, call),
            gloo("all_reduce", 10 * MS * call + 9 * MS, 100),
        )
    ]
    paths = [
        write(
            tmp_path / f"r{rank}.json",
            document(events, distributedInfo={"rank": rank, "world_size": 2, **BOTH}),
        )
        for rank in range(2)
    ]
    summary = summarise_files(paths)
    assert summary.communication is not None
    assert summary.communication.skew is not None
    assert [one.id for one in summary.findings if one.id != "clock-by-collectives"] == []


def test_one_process_of_several_groups_compares_no_ranks(tmp_path: Path) -> None:
    groups = {"pg_config": [{"ranks": [0, 1]}, {"ranks": [0]}]}
    found = summarise_files(
        [rank_file(tmp_path, rank, 0, groups=groups) for rank in range(2)]
    ).communication
    assert found is not None
    assert found.skew is None
    assert "process group of each collective" in found.needs
    assert found.collectives[0].group_size is None
    assert found.collectives[0].bus_bandwidth is None
    assert found.collectives[0].algorithm_bandwidth is not None


def test_without_any_word_on_groups_ranks_are_matched_and_only_the_bus_is_unknown(
    tmp_path: Path,
) -> None:
    found = summarise_files(
        [rank_file(tmp_path, rank, 0, groups={}) for rank in range(2)]
    ).communication
    assert found is not None
    assert found.skew is not None
    assert (found.collectives[0].group_size, found.collectives[0].bus_bandwidth) == (None, None)


@pytest.mark.parametrize(
    ("name", "dims", "kinds", "groups", "expected"),
    [
        (
            "gloo:all_reduce",
            "[[2, 3]]",
            '["c10::BFloat16"]',
            ((0, 1),),
            Collective("all_reduce", 6, None, "BFloat16", 2, "gloo [0, 1]"),
        ),
        (
            "gloo:all_gather",
            "[[5]]",
            '["long int"]',
            ((0, 1, 2),),
            Collective("all_gather", 5, 15, "Long", 3, "gloo [0, 1, 2]"),
        ),
        (
            "gloo:all_gather",
            "[[5]]",
            '["float"]',
            (),
            Collective("all_gather", None, None, "Float", None, "gloo"),
        ),  # what all ranks give together is not known
        (
            "mpi:all_to_all",
            "[[4], [4]]",
            '["float", "float"]',
            ((0, 1), (2, 3)),
            Collective("all_to_all", 8, None, "Float", None, "mpi ?"),
        ),
        (
            "gloo:barrier",
            "",
            "",
            ((0, 1),),
            Collective("barrier", None, None, "", 2, "gloo [0, 1]"),
        ),
        (
            "gloo:sparse_all_reduce",
            "[[9]]",
            '["float"]',
            ((0, 1),),
            Collective("all_reduce", None, None, "", 2, "gloo [0, 1]"),
        ),
        (
            "gloo:broadcast",
            "[[9], [1]]",
            '["float", "int"]',
            ((0, 1),),
            Collective("broadcast", None, None, "", 2, "gloo [0, 1]"),
        ),
        (
            "gloo:recvAnySource",
            "[[9]]",
            '["double"]',
            ((0, 1),),
            Collective("send_recv", 9, None, "Double", 2, "gloo [0, 1]"),
        ),
        (
            "gloo:scatter",
            '{"damaged"',
            "[]",
            ((0, 1),),
            Collective("scatter", None, None, "", 2, "gloo [0, 1]"),
        ),
    ],
)
def test_what_a_range_does(
    name: str, dims: str, kinds: str, groups: tuple[tuple[int, ...], ...], expected: Collective
) -> None:
    assert collective((name, dims.encode(), kinds.encode()), groups) == expected


def test_ranges_of_device_backends_are_no_collectives_of_the_host(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.json",
        document(
            [
                event("user_annotation", "nccl:all_reduce", 10, 5),
                event("user_annotation", "mine", 20, 5),
                op("aten::mm", 0, 50, 1),
            ]
        ),
    )
    trace = readers.read(path)
    assert (trace.marks.collective == -1).all()
    assert summarise_trace(trace, "a").communication is None


def arrivals_of(starts: I64) -> list[Arrivals]:
    """Ranks on one clock: starts in ns, of (rank, call); every call ends 1 ms after the last
    start.
    """
    ends = starts.max(axis=0) + 1_000_000
    text = encode(Collective("all_reduce", 8, None, "Float", len(starts), "gloo [0, 1]"))
    what = np.zeros(starts.shape[1], np.int64)
    return [
        Arrivals(f"rank {rank}", start, ends - start, what, (text,), common_clock=True)
        for rank, start in enumerate(starts)
    ]


def talk(found: Skew | None) -> Communication:
    return Communication(devices=(), collectives=(), skew=found)


def shared_cores(late: list[int], calls: int = 60) -> list[Arrivals]:
    """Arrivals that scatter by a millisecond either way on busy cores; in the calls listed rank 1
    is 20 ms late.
    """
    rng = np.random.default_rng(5)
    starts = np.arange(calls) * 50_000_000 + rng.integers(0, 1_000_000, (2, calls))
    starts[1, late] += 20_000_000
    return arrivals_of(starts)


def test_a_rank_late_in_some_calls_is_found_through_the_scatter_of_busy_cores() -> None:
    ranks = shared_cores(list(range(0, 60, 3)))
    found = skew(ranks, *matched(ranks))
    assert found is not None
    late = next(row for row in found.rows if row.rank == "rank 1")
    assert late.last_costly == found.costly
    assert FEWEST <= found.costly <= 20
    (told,) = straggler(talk(found))
    assert told.figures["rank"] == "rank 1"
    assert f"of the {found.costly} collectives that cost 80 % of the waiting" in told.message
    few = shared_cores([0, 30])  # two stalls are no habit
    assert straggler(talk(skew(few, *matched(few)))) == ()
    none = shared_cores([])
    assert straggler(talk(skew(none, *matched(none)))) == ()


@pytest.mark.parametrize(("share", "kind"), [(0.6, "communication"), (0.2, "undetermined")])
def test_a_cpu_job_that_waits_for_its_ranks_most_of_the_time_is_limited_by_them(
    share: float, kind: str
) -> None:
    figures = {
        name: Figure(value=value, unit="cores")
        for name, value in (
            ("cores_used", 1.4),
            ("cores_allowed", 2.0),
            ("cpu_tree_wait", 0.0),
            ("cpu_node", 1.4),
        )
    }
    figures["steps_per_second"] = Figure(value=3.0, unit="steps/s")
    told = cpu_verdict(
        figures,
        [finding("exposed-communication", "x", exposed_share=share, communication_share=share)],
    )
    assert isinstance(told, Verdict)
    assert told.kind == kind
    if kind == "communication":
        assert told.at_most == pytest.approx(2.5)
        assert "60.0 % of the time in collectives" in told.text


def test_nothing_is_said_where_nothing_was_recorded() -> None:
    assert communication_findings(None, None) == ()

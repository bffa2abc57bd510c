"""What rank 0 makes of the other ranks' words; ranks in real processes are in test_amd_endings and
test_amd_splitting.
"""

from __future__ import annotations

import msgspec

from profharness.findings import finding
from profharness.measure.rank_exchange import rank_findings, with_cpus_of_ranks
from profharness.rundir.manifest import NodeRecord, RankOutcome


def outcome(rank: int, *messages: str) -> RankOutcome:
    found = tuple(finding("profiler-failed", message) for message in messages)
    return RankOutcome(
        rank=rank,
        host="n",
        pid=rank + 100,
        exit_status=0,
        pass_name="p",
        start_boot_ns=0,
        end_boot_ns=1,
        findings=found,
    )


def test_the_same_finding_of_several_ranks_is_one() -> None:
    found = rank_findings(
        [
            outcome(0),
            outcome(1, "rocprofv3 traced process 101"),
            outcome(2, "rocprofv3 traced process 102", "it left no files"),
        ]
    )
    assert [(one.id, one.message) for one in found] == [
        ("profiler-failed", "ranks 1, 2: rocprofv3 traced process 101"),
        ("profiler-failed", "rank 2: it left no files"),
    ]


def test_many_ranks_are_not_all_listed() -> None:
    (found,) = rank_findings([outcome(rank, "it left no files") for rank in range(1, 64)])
    assert found.message == "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 55 more: it left no files"


def test_the_cpus_of_a_node_are_those_of_all_its_ranks() -> None:
    """A launcher binds each rank to a core of its own; a rank elsewhere has other cores."""
    bound = [
        msgspec.structs.replace(outcome(0), cpus_allowed=(0,)),
        msgspec.structs.replace(outcome(1), cpus_allowed=(1,)),
        msgspec.structs.replace(outcome(2), host="elsewhere", cpus_allowed=(5,)),
    ]
    node = NodeRecord(host="n", cpus=8, cpus_allowed=(0,))
    assert with_cpus_of_ranks(node, bound).cpus_allowed == (0, 1)

"""What rank 0 makes of the other ranks' words; ranks in real processes are in test_amd_endings and
test_amd_splitting.
"""

from __future__ import annotations

from profharness.findings import finding
from profharness.measure.rank_exchange import rank_findings
from profharness.rundir.manifest import RankOutcome


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

"""Files of ranks on clocks of their own, merged by their collectives, against the truth that they
were made from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.cli import run_cli
from profharness.errors import UsageError
from profharness.trace.model import PUT_ON
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import NO_CLOCK, load
from profharness.understand.many.figures import summarise_files
from profharness.understand.merge.command import MergeOptions, merge_to_file
from tests.readers.kineto.kineto_files import document, kernel, launch, write

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
RANKS, CALLS = 4, 30
OFFSET_US = (0, 5_000_000, -3_000_000, 123_456)


class Job:
    """The true times (us) of the all-reduces of each rank, and the files that stamp them."""

    def __init__(self, folder: Path, *, hosts: tuple[str, ...] = (), named: str = "allreduce"):
        dice = np.random.default_rng(11)
        meet = 10_000_000 + np.arange(CALLS) * 2_000
        self.start = meet + dice.integers(0, 300, (RANKS, CALLS))
        self.end = self.start.max(axis=0) + dice.integers(20, 60, CALLS)
        self.paths = [self._file(folder, rank, hosts, named) for rank in range(RANKS)]

    def _file(self, folder: Path, rank: int, hosts: tuple[str, ...], named: str) -> Path:
        told = {
            "Collective_name": named,
            "In_msg_nelems": 1000,
            "Out_msg_nelems": 1000,
            "dtype": "Float",
            "Group_size": RANKS,
            "Process_Group_Ranks": str(list(range(RANKS))),
        }
        events = []
        for call, (start, end) in enumerate(zip(self.start[rank], self.end, strict=True)):
            begin = int(start) + OFFSET_US[rank]
            events += [
                launch("cudaLaunchKernelExC", begin - 5, 2, 50 + call),
                kernel(REDUCE, begin, int(end - start), stream=20, correlation=50 + call, **told),
            ]
        head = {"distributedInfo": {"rank": rank, "world_size": RANKS, "backend": "nccl"}}
        if hosts:
            head["host_name"] = hosts[rank]
        return write(folder / f"rank{rank}.json", document(events, **head))


def starts(path: Path) -> np.ndarray:
    """Starts (us) of the all-reduces by rank, from the earliest of rank 0 on."""
    trace = readers.read(path)
    found = np.array(
        [np.sort(trace.kernels.start_ns[trace.kernels.device == one]) for one in range(RANKS)]
    )
    return (found - found[0, 0]) / 1000


def test_merged_ranks_stand_where_they_were(tmp_path, capsys):
    job = Job(tmp_path)
    report = merge_to_file(job.paths, tmp_path / "m.pftrace", MergeOptions())
    truth = job.start - job.start[0, 0]
    assert np.abs(starts(tmp_path / "m.pftrace") - truth).max() <= 0.002
    told = [line for line in report.lines if "19 of 20 ends" in line]
    assert len(told) == 3
    assert all("wrong by at most" in line for line in told)
    assert "4 sources, aligned to" in report.brief[0]
    apart = run_cli(["merge", *map(str, job.paths), "-o", str(tmp_path / "n.pftrace"), "-v"])
    assert apart == 0
    assert "others are put on its clock by the common end of collectives" in capsys.readouterr().err


def test_the_trace_says_how_its_clocks_were_put_together(tmp_path):
    job = Job(tmp_path)
    merge_to_file(job.paths, tmp_path / "m.pftrace", MergeOptions())
    stated = dict(readers.read(tmp_path / "m.pftrace").sources[0].details)
    told = [value for key, value in stated.items() if key.endswith("1.alignment")]
    assert told
    assert "30 collectives: 19 of 20 ends within" in told[0]
    assert int(stated["profharness.source.1.bound_ns"]) > 20_000


def test_the_report_of_the_files_says_it_too(tmp_path):
    summary = summarise_files(Job(tmp_path).paths)
    (found,) = [one for one in summary.findings if one.id == "clock-by-collectives"]
    assert "4 ranks share no clock" in found.message
    assert summary.sources[0].bound_ns == 0
    assert all(row.bound_ns > 20_000 for row in summary.sources[1:])
    assert summary.communication.skew.clock_bound_ns == max(row.bound_ns for row in summary.sources)


def test_files_of_several_hosts_name_the_file_whose_clock_they_are_on(tmp_path):
    job = Job(tmp_path, hosts=("n0", "n1", "n2", "n3"))
    loaded = load(job.paths)
    assert {dict(source.details)[PUT_ON] for source in loaded.trace.sources} == {str(job.paths[0])}


def test_a_cut_in_time_is_on_the_common_clock(tmp_path):
    job = Job(tmp_path)
    options = MergeOptions(cut=Cut(window=(0, 20_000_000)))
    report = merge_to_file(job.paths, tmp_path / "m.pftrace", options)
    first = min(job.start.min(), job.start.min() - 5)
    inside = int((job.start < first + 20_000).sum())
    assert any(f"wrote {inside} kernels" in line for line in report.lines)


def test_collectives_that_do_not_agree_are_refused_or_marked(tmp_path):
    job = Job(tmp_path)
    (tmp_path / "other").mkdir()
    other = Job(tmp_path / "other", named="broadcast").paths[1]
    paths = [job.paths[0], other]
    with pytest.raises(UsageError, match="do not agree"):
        merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions())
    report = merge_to_file(paths, tmp_path / "m.pftrace", MergeOptions(allow_unaligned=True))
    assert f"{paths[0]}: {NO_CLOCK}" in report.lines


def test_memory_and_disk_give_the_same(tmp_path):
    job = Job(tmp_path)
    merge_to_file(job.paths, tmp_path / "m.pftrace", MergeOptions())
    kernels = load(job.paths).trace.kernels
    own = np.sort(kernels.start_ns[kernels.rank == 1]) - kernels.start_ns[kernels.rank == 0].min()
    assert np.array_equal(own / 1000, starts(tmp_path / "m.pftrace")[1])


def test_one_file_alone_has_nothing_to_put_together(tmp_path):
    summary = summarise_files(Job(tmp_path).paths[:1])
    assert "clock-by-collectives" not in {one.id for one in summary.findings}

"""Several runs, and runs with loose files, merged in parts: every record, arrow, process and
counter that merging them in memory gives.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profharness.errors import InputError, UsageError
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import load
from profharness.understand.merge.one_run import SCRATCH
from profharness.understand.merge.sources import (
    MergeOptions,
    attributes,
    merge_to_file,
    write_options,
)
from profharness.writers import perfetto
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.run_files import BOOT, EPOCH, LATER, run_of
from tests.understand.merge.test_one_run import CUTS, records
from tests.writers.decode import decode


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs on the same hosts with the same passes, ranks and process ids; the second lends no
    geometry.
    """
    folder = tmp_path_factory.mktemp("runs")
    return [
        run_of(folder / "one").root,
        run_of(folder / "two", seed=7, ranks=3, kernels=20, lend=False).root,
    ]


@pytest.fixture(scope="module")
def on_one_host(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two runs of one host, so that all their times are on one clock."""
    folder = tmp_path_factory.mktemp("alone")
    made = [run_of(folder / "one", ranks=2), run_of(folder / "two", seed=7, ranks=2, kernels=20)]
    for run in made:
        (run.telemetry / "n1.samples.bin").unlink()
    return [run.root for run in made]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("files")
    base = EPOCH + BOOT
    return [
        write(
            folder / f"rank{rank}.json",
            document(
                [launch("hipLaunchKernel", 10.0 * n, 2.0, n + 1) for n in range(20)]
                + [kernel(f"k{n % 3}", 10.0 * n + 5, 3.5, correlation=n + 1) for n in range(20)],
                baseTimeNanoseconds=base,
                distributedInfo={"rank": rank, "world_size": 2},
            ),
        )
        for rank in range(2)
    ]


def in_memory(paths: list[Path], target: Path, options: MergeOptions) -> Path:
    """What is to come out, by the plain way."""
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    trace, _ = cutting.cut(loaded.trace, Cut(ranks=options.cut.ranks), 0)
    trace, _ = cutting.cut(trace, replace(options.cut, ranks=None), cutting.first_ns(trace) or 0)
    perfetto.write(
        trace,
        target,
        attributes=attributes(loaded.source, None, trace.sources),
        options=replace(write_options(None), max_kernels=options.max_kernels),
    )
    return target


def both(paths: list[Path], folder: Path, options: MergeOptions) -> tuple[str, ...]:
    report = merge_to_file(paths, folder / "parts.pftrace", options)
    expected, found = (
        records(decode(in_memory(paths, folder / "whole.pftrace", options))),
        records(decode(report.path)),
    )
    for kind, counted in expected.items():
        assert found[kind] == counted, kind
    assert sum(found["gpu"].values())
    return report.lines


def test_two_runs_are_what_memory_gives(runs, tmp_path):
    lines = both(runs, tmp_path, MergeOptions(allow_unaligned=True))
    assert any(
        "160 of 160" in line and "one/torch" not in line for line in lines
    )  # geometry is lent within the first
    assert any(line.startswith(f"wrote {2 * 4 * 40 + 3 * 20} kernels") for line in lines)
    assert not list(tmp_path.glob(f"{SCRATCH}*"))


@pytest.mark.parametrize(
    "cut",
    [
        Cut(window=(30_000_000_000, LATER + 1_000_000_000)),
        Cut(ranks=frozenset({1})),
        CUTS["steps"],
        Cut(window=(LATER, None), ranks=frozenset({0})),
    ],
    ids=lambda cut: cut.words(),
)
def test_what_is_cut_is_the_same(on_one_host, tmp_path, cut):
    lines = both(on_one_host, tmp_path, MergeOptions(cut=cut))
    assert any(line.startswith("left out") for line in lines)


@pytest.mark.parametrize("limit", [1, 77, 10_000])
def test_the_first_kernels(on_one_host, tmp_path, limit):
    both(on_one_host, tmp_path, MergeOptions(max_kernels=limit))


@pytest.mark.parametrize(
    "cut",
    [Cut(), Cut(window=(1_000_000, 3_000_000_000)), CUTS["steps"]],
    ids=lambda cut: cut.words(),
)
def test_laid_over_their_bare_passes(on_one_host, tmp_path, cut):
    both(on_one_host, tmp_path, MergeOptions(overlay=True, cut=cut))


def test_a_run_with_files_beside_it(runs, files, tmp_path):
    lines = both([runs[1], *files], tmp_path, MergeOptions(allow_unaligned=True))
    assert sum("not aligned" in line for line in lines) >= 2
    with pytest.raises(UsageError, match="one clock"):
        merge_to_file([runs[1], *files], tmp_path / "refused.pftrace", MergeOptions())
    assert not (tmp_path / "refused.pftrace").exists()


def test_a_damaged_file_among_them_is_left_out(runs, files, tmp_path):
    lost = tmp_path / "lost.json"
    lost.write_bytes(b'{"traceEvents": [')
    report = merge_to_file(
        [runs[1], files[0], lost], tmp_path / "m.pftrace", MergeOptions(allow_unaligned=True)
    )
    assert any("lost.json" in line and "left out" in line for line in report.lines)
    with pytest.raises(InputError):
        merge_to_file([runs[1], lost], tmp_path / "n.pftrace", MergeOptions(allow_unaligned=True))


def test_ranks_that_nobody_has_are_refused(runs, tmp_path):
    with pytest.raises(UsageError, match="is left"):
        merge_to_file(runs, tmp_path / "m.pftrace", MergeOptions(cut=Cut(ranks=frozenset({99}))))
    assert not list(tmp_path.iterdir())

"""What `merge` tells of kernels is what the report's facts say of them, and nothing that a cut, or
records elsewhere, would make wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from profharness.analysis.kernels.counter_work import CountedMeans, counted_work
from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.roofline import CLASSES
from profharness.errors import InputError
from profharness.node import ceilings
from profharness.readers import read
from profharness.rundir.manifest import Manifest, PassRecord
from profharness.rundir.paths import MANIFEST
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.parts.cutting import Cut
from profharness.trace.parts.select import by_source
from profharness.understand.load import load
from profharness.understand.many.jobs import Workers
from profharness.understand.merge.command import MergeOptions, merge_to_file
from profharness.understand.merge.figures import after_all, teller
from tests.analysis.use.test_device_use import FLOPS, products
from tests.conftest import shared_path
from tests.fakes.rocprofv3_program import program
from tests.understand.test_device_use import run_of
from tests.writers.decode import decode

TIMESFORMER = shared_path("fixtures/kineto/mi300x_timesformer.json.gz")


@dataclass(frozen=True)
class _Passes:
    """A manifest, as far as it is asked."""

    passes: tuple[PassRecord, ...]
    nodes: tuple[()] = ()


def of_run(*passes: PassRecord) -> Manifest:
    return _Passes(passes)  # type: ignore[return-value]  # what is asked of it


@pytest.fixture(autouse=True)
def no_calibrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ceilings, "stored", lambda: ())


@pytest.mark.slow
@pytest.mark.skipif(not TIMESFORMER.exists(), reason="needs the recorded traces")
def test_a_merged_file_tells_what_the_report_says(tmp_path: Path) -> None:
    merged = merge_to_file([TIMESFORMER], tmp_path / "m.pftrace", MergeOptions()).path
    facts = KernelFacts(trace := read(TIMESFORMER))
    shown = Counter(
        (e.ts, dict(e.args).get("flops"), dict(e.args).get("limiter"))
        for e in decode(merged).gpu
        if e.stage == "kernel"
    )
    flops, kinds = facts.work.flops, facts.rates.kind.tolist()
    single = np.isfinite(flops) & facts.work.alone
    assert shown == Counter(
        (int(start), round(flops[row]) if single[row] else None, (*CLASSES[:3], None)[kinds[row]])
        for row, start in enumerate(trace.kernels.start_ns.tolist())
    )
    assert single.sum() > 100
    again = read(merged)
    assert (len(again.counters), len(again.kernels)) == (0, len(trace.kernels))


@pytest.mark.parametrize("cut", [Cut(window=(0, None)), Cut(steps=(0, 1))])
def test_where_kernels_are_cut_away_only_the_fill_is_told(cut: Cut) -> None:
    trace, paths = products(0.75), [Path("t.json")]
    for told in (teller(paths, None, cut)(trace), teller(paths, None, Cut(), 5)(trace)):
        assert told.fill.tolist() == [100]
        assert not np.isfinite(told.flops).any()
        assert told.limiter.tolist() == [-1]
    assert teller(paths, None, Cut(ranks=frozenset({0})))(trace).flops.tolist() == [FLOPS]


def test_no_limiter_where_counters_stand_in_records_elsewhere(tmp_path: Path) -> None:
    trace = products(0.75)
    counted = PassRecord(name="rocprofv3-pmc", counters=("SQ_WAVES",), perturbing=True)
    assert teller([tmp_path], of_run(PassRecord(name="torch")))(trace).limiter.tolist() == [0]
    told = teller([tmp_path], of_run(PassRecord(name="torch"), counted))(trace)
    assert told.limiter.tolist() == [-1]
    assert np.isfinite(told.of_peak).all()
    perturbed = replace(trace, sources=(replace(trace.sources[0], pass_name=counted.name),))
    told = teller([tmp_path], of_run(counted))(perturbed)
    assert (told.flops.tolist(), np.isfinite(told.of_peak).any()) == ([FLOPS], False)


def test_no_share_where_the_ceilings_of_a_report_are_not_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = products(0.75)
    files = teller([Path("a.json"), Path("b.json")], None)(trace)
    assert (np.isfinite(files.of_peak).all(), files.limiter.tolist()) == (True, [-1])
    (tmp_path / MANIFEST).write_text("{}")
    told = teller([tmp_path, Path("b.json")], None)(trace)
    assert (np.isfinite(told.of_peak).any(), told.flops.tolist()) == (False, [FLOPS])

    def damaged(_: Path) -> None:
        raise InputError("damaged", "calibrate again")

    monkeypatch.setattr(ceilings, "for_run", damaged)
    told = teller([tmp_path], of_run(PassRecord(name="torch")))(trace)
    assert (np.isfinite(told.of_peak).any(), told.limiter.tolist()) == (False, [-1])


def counted_run(root: Path) -> Path:
    """A pass of torch and a counter pass, in files of their own."""
    given = program(3, 40, pid=1, host="node1", counters=True)
    moved = tuple(
        replace(kernel, counters=(("FETCH_SIZE", (4e4 + at,)), ("WRITE_SIZE", (2e4,))))
        if kernel.counters
        else kernel
        for at, kernel in enumerate(given.kernels)
    )
    run = run_of(root, replace(given, kernels=moved))
    manifest = run.read_manifest()
    first, second = manifest.passes
    counting = msgspec.structs.replace(second, counters=("FETCH_SIZE", "WRITE_SIZE"))
    run.write_manifest(msgspec.structs.replace(manifest, passes=(first, counting)))
    return root


def test_a_run_in_parts_tells_what_it_tells_in_memory(tmp_path: Path) -> None:
    """The counters of one part speak for the kernels of another."""
    run = counted_run(tmp_path / "run")
    told = []
    for name, options in (("a", MergeOptions()), ("b", MergeOptions(workers=Workers(1)))):
        merged = merge_to_file([run], tmp_path / f"{name}.pftrace", options).path
        told.append(
            Counter(
                (e.ts, e.name, tuple(sorted(dict(e.args).items())))
                for e in decode(merged).gpu
                if e.stage == "kernel"
            )
        )
    assert told[0] == told[1]
    assert any(dict(args).get("limiter") for _, _, args in told[0])


def test_means_of_parts_are_those_of_all_records(tmp_path: Path) -> None:
    whole = load([counted_run(tmp_path / "run")]).trace
    kernels = whole.kernels
    for unknown in (NULL, int(kernels.name[0])):  # a name of which one workgroup is not known
        first = np.arange(len(kernels)) == np.flatnonzero(kernels.name == kernels.name[0])[0]
        lost = first & (kernels.name == unknown)
        trace = replace(
            whole, kernels=kernels.with_columns(workgroups=np.where(lost, NULL, kernels.workgroups))
        )
        parts = [by_source(trace, np.arange(len(trace.sources)) == at) for at in (0, 1)]
        means = CountedMeans()
        for part in parts:
            means.add(part)
        assert means.counters == len(trace.counters) > 0
        for part in parts:
            found, expected = means.of(part), counted_work(trace, part)
            assert expected.anything
            for name in ("fabric_bytes", "hbm_bytes", "operations"):
                np.testing.assert_allclose(
                    getattr(found, name), getattr(expected, name), rtol=1e-12
                )
            assert found.by_type.keys() == expected.by_type.keys()
            for dtype, column in expected.by_type.items():
                np.testing.assert_allclose(found.by_type[dtype], column, rtol=1e-12)


def test_parts_are_looked_at_first_only_where_counters_may_speak(tmp_path: Path) -> None:
    def unread() -> Iterator[Trace]:
        raise AssertionError("read for nothing")
        yield  # a generator

    for passes in ((), (PassRecord(name="torch"),)):
        tell = teller([tmp_path], of_run(*passes))
        assert after_all(tell, unread()) is tell
    counting = of_run(PassRecord(name="pmc", counters=("SQ_WAVES",), perturbing=True))
    cut = teller([tmp_path], counting, Cut(window=(0, None)))
    assert after_all(cut, unread()) is cut
    assert after_all(None, unread()) is None

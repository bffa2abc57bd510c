"""Whatever is merged in parts gives what it gives in memory: every record, arrow, process, queue,
counter and attribute, of a run, of several runs, of runs with files beside them, and of files.
"""

from __future__ import annotations

import json
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profharness.errors import InputError, UsageError
from profharness.rundir.paths import RunDir
from profharness.rundir.private.folders import HIDDEN
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut
from profharness.understand.load import load
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge.command import MergeOptions, merge_to_file
from profharness.understand.merge.figures import teller
from profharness.understand.merge.head import attributes, gpu_representation, write_options
from profharness.understand.merge.report import MergeReport
from profharness.units import format_bytes
from profharness.writers import perfetto
from tests.generated import Generated
from tests.readers.kineto.kineto_files import document, kernel, launch, write
from tests.run_files import BOOT, EPOCH, LATER, run_of

# fixtures
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.understand.merge.decoded_records import records
from tests.variants import thorough
from tests.writers.decode import decode

SLOW = pytest.mark.slow
IN_PARTS = Workers(processes=1)
UNALIGNED = MergeOptions(allow_unaligned=True)
CUTS = {
    "all": Cut(),
    "window": Cut(window=(20_000_000, 60_000_150_000)),
    "steps": Cut(steps=(2, 4)),
    "steps-open": Cut(steps=(3, None)),
    "ranks": Cut(ranks=frozenset({1, 2})),
    "steps-of-ranks": Cut(steps=(None, 3), ranks=frozenset({3})),
    "window-of-ranks": Cut(window=(None, 90_000), ranks=frozenset({0, 3})),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    return run_of(tmp_path_factory.mktemp("runs") / "run")


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


Named = Callable[[str], list[Path]]


@pytest.fixture
def named(
    run: RunDir,
    runs: list[Path],
    on_one_host: list[Path],
    files: list[Path],
    ranks: list[Generated],
) -> Named:
    """What is merged, by a name for it."""
    paths = {
        "run": [run.root],
        "runs": runs,
        "runs of one host": on_one_host,
        "run and files": [runs[1], *files],
        "files": [made.path for made in ranks],
    }
    return paths.__getitem__


def in_memory(paths: list[Path], target: Path, options: MergeOptions) -> Path:
    """What is to come out, by the plain way."""
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    trace, _ = cutting.cut(loaded.trace, Cut(ranks=options.cut.ranks), 0)
    trace, _ = cutting.cut(trace, replace(options.cut, ranks=None), cutting.first_ns(trace) or 0)
    chosen = write_options(loaded.manifest, gpu_representation(options.gpu_repr))
    perfetto.write(
        trace,
        target,
        attributes=attributes(loaded.source, loaded.manifest, trace.sources),
        options=replace(
            chosen,
            max_kernels=options.max_kernels,
            tell_kernels=teller(paths, loaded.manifest, options.cut, options.max_kernels),
        ),
    )
    return target


def in_parts(paths: list[Path], folder: Path, options: MergeOptions) -> MergeReport:
    """Merged in parts, and found to hold what merging in memory gives."""
    options = replace(options, workers=IN_PARTS)
    parts = merge_to_file(paths, folder / "parts.pftrace", options)
    whole = in_memory(paths, folder / "whole.pftrace", options)
    expected, written = records(decode(whole)), records(decode(parts.path))
    if all(path.is_file() for path in paths):  # their head names them by their number
        del expected["attributes"]
    for kind, counted in expected.items():
        assert written[kind] == counted, kind
    assert any(written[kind] for kind in ("gpu", "slices", "counters"))
    assert not list(folder.glob(f"{HIDDEN}*"))
    return parts


def said(lines: tuple[str, ...], path: Path) -> list[str]:
    """What a report says, without the size of its file: `trace_uuid` is a digest of the parts that
    a file was written in, and a number takes fewer bytes or more as it happens to be.
    """
    size = format_bytes(path.stat().st_size)
    assert sum(line.endswith(f", {size}") for line in lines) == 1
    return [line.removesuffix(f", {size}") for line in lines]


def both(run: RunDir, folder: Path, options: MergeOptions) -> tuple[MergeReport, MergeReport]:
    """One run by the command's own way in memory, and in parts."""
    report = in_parts([run.root], folder, options)
    target = folder / "small.pftrace"
    return merge_to_file([run.root], target, replace(options, workers=IN_ONE)), report


@pytest.mark.parametrize(
    "name",
    ["run", "runs", "runs of one host", "run and files", pytest.param("files", marks=SLOW)],
)
def test_parts_are_what_memory_gives(named, tmp_path, name):
    in_parts(named(name), tmp_path, UNALIGNED)


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        *(("run", cut) for name, cut in CUTS.items() if name != "all"),
        ("runs of one host", Cut(window=(30_000_000_000, LATER + 1_000_000_000))),
        ("runs of one host", Cut(ranks=frozenset({1}))),
        ("runs of one host", CUTS["steps"]),
        ("runs of one host", Cut(window=(LATER, None), ranks=frozenset({0}))),
        pytest.param("files", Cut(steps=(7, 9)), marks=SLOW),
        pytest.param("files", Cut(steps=(8, 10), ranks=frozenset({1, 2})), marks=SLOW),
    ],
    ids=lambda value: value if isinstance(value, str) else value.words(),
)
def test_what_is_cut_is_the_same(named, tmp_path, name, cut):
    report = in_parts(named(name), tmp_path, replace(UNALIGNED, cut=cut))
    assert any(line.startswith("left out") for line in report.brief)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("run", CUTS["window"]),
        ("runs of one host", Cut()),
        *thorough(
            ("run", Cut()),
            ("run", Cut(window=(1_000_000, 3_000_000_000))),
            ("run", CUTS["steps"]),
            ("runs of one host", CUTS["steps"]),
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value.words(),
)
def test_laid_over_the_bare_pass(named, tmp_path, name, cut):
    in_parts(named(name), tmp_path, MergeOptions(overlay=True, cut=cut))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "limit"),
    [
        ("run", 100),
        ("runs of one host", 351),
        *thorough(("run", 1), ("run", 10_000), ("runs of one host", 77)),
    ],
)
def test_the_first_kernels(named, tmp_path, name, limit):
    report = in_parts(named(name), tmp_path, MergeOptions(max_kernels=limit))
    kernels = {"run": 2 * 4 * 40, "runs of one host": 2 * 2 * (40 + 20)}[name]
    assert any("more than the" in line for line in report.brief) == (limit < kernels)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2_000, *thorough(1, 100_000)])
def test_the_first_kernels_of_files_that_share_no_clock(ranks, tmp_path, limit):
    """Each file counts from its own first record."""
    paths = [made.path for made in ranks]
    target = tmp_path / "m.pftrace"
    # one limit by several processes, as without a word about them
    options = replace(UNALIGNED, max_kernels=limit)
    if limit != 2_000:
        options = replace(options, workers=Workers(processes=1))
    lines = merge_to_file(paths, target, options).lines
    assert sum(f"more than the {limit} kernels asked for" in line for line in lines) == (
        limit < 9_000
    )
    alone = [load([path]).trace for path in paths]
    starts = sorted(
        (start - (cutting.first_ns(trace) or 0), file, start)
        for file, trace in enumerate(alone)
        for start in trace.kernels.start_ns.tolist()
    )
    shown = [event.ts for event in decode(target).gpu if event.stage == "kernel"]
    assert sorted(shown) == sorted(start for _, _, start in starts[:limit])


@pytest.mark.slow
def test_one_run_says_the_same_in_parts(run, tmp_path):
    whole, parts = both(run, tmp_path, MergeOptions())
    assert whole.path.read_bytes() == (tmp_path / "whole.pftrace").read_bytes()
    assert said(parts.lines, parts.path) == said(whole.lines, whole.path)
    got = records(decode(parts.path))
    assert sum(got["gpu"].values()) == 2 * 4 * 44
    with_geometry = sum(
        any(name == "registers_per_thread" for name, _ in event[-1]) for event in got["gpu"]
    )
    assert with_geometry > 200  # geometry was lent
    assert any(
        "taken from the rocprofv3 pass" in line and "160 of 160" in line for line in parts.lines
    )
    assert {path[-1] for (_, path), _, _ in got["counters"]} >= {"throughput", "power"}
    whole, parts = both(run, tmp_path, MergeOptions(force=True, max_kernels=100))
    assert said(parts.brief, parts.path) == said(whole.brief, whole.path)


@pytest.mark.slow
def test_two_runs_keep_what_belongs_to_each(runs, tmp_path):
    lines = merge_to_file(runs, tmp_path / "m.pftrace", UNALIGNED).lines
    assert any(
        "160 of 160" in line and "one/torch" not in line for line in lines
    )  # geometry is lent within the first
    assert any(line.startswith(f"wrote {2 * 4 * 40 + 3 * 20} kernels") for line in lines)


@pytest.mark.slow
def test_files_of_several_processes_keep_their_processes(ranks, tmp_path):
    options = replace(UNALIGNED, workers=Workers(processes=2))
    report = merge_to_file([made.path for made in ranks], tmp_path / "m.pftrace", options)
    assert sum("not aligned" in line for line in report.lines) == 3
    assert len({event.pid for event in decode(report.path).gpu}) == 3


@pytest.mark.parametrize(
    ("seed", "ranks", "lend"), [(2, 1, True), (3, 2, False), (4, 3, True), (5, 4, False)]
)
@pytest.mark.parametrize("representation", ["render-stage", *thorough("track-event")])
def test_other_runs(tmp_path, seed, ranks, lend, representation):
    made = run_of(tmp_path / "run", seed=seed, ranks=ranks, kernels=30 + seed, lend=lend)
    both(made, tmp_path, MergeOptions(gpu_repr=representation))


@pytest.mark.slow
def test_ranks_that_are_not_stated_are_looked_at_together(run, tmp_path):
    made = run_of(tmp_path / "run")
    manifest = made.read_manifest()
    made.write_manifest(
        type(manifest)(
            **{
                **{name: getattr(manifest, name) for name in manifest.__struct_fields__},
                "artifacts": tuple(_without_rank(one) for one in manifest.artifacts),
            }
        )
    )
    both(made, tmp_path, MergeOptions())


def _without_rank(artifact):
    return type(artifact)(
        path=artifact.path,
        layer=artifact.layer,
        format=artifact.format,
        pass_name=artifact.pass_name,
        host=artifact.host,
        pid=artifact.pid,
    )


def test_damage_and_absence_are_told_alike(tmp_path):
    made = run_of(tmp_path / "run", ranks=2)
    artifacts = made.read_manifest().artifacts
    (made.root / artifacts[0].path).write_bytes(b'{"traceEvents": [')
    (made.root / artifacts[3].path).unlink()
    whole, parts = both(made, tmp_path, MergeOptions())
    assert [line for line in parts.lines if "left out" in line] == [
        line for line in whole.lines if "left out" in line
    ]
    assert sum("the file is left out" in line for line in parts.lines) == 2


def test_no_two_groups_are_in_memory_at_once(run, tmp_path, monkeypatch):
    seen: list[weakref.ref] = []
    add = perfetto._Job.add

    def counted(job, trace):
        assert not any(one() is not None for one in seen), "an earlier group is still held"
        add(job, trace)
        seen.append(weakref.ref(trace.kernels))

    monkeypatch.setattr(perfetto._Job, "add", counted)
    merge_to_file(
        [run.root], tmp_path / "m.pftrace", MergeOptions(workers=IN_PARTS, cut=CUTS["window"])
    )
    assert len(seen) == 7  # four ranks, the trials, two hosts' telemetry


def test_nothing_left_is_refused_and_leaves_no_file(run, tmp_path):
    for cut in (Cut(steps=(900, None)), Cut(ranks=frozenset({77}))):
        said = []
        for workers in (IN_ONE, IN_PARTS):
            with pytest.raises(UsageError) as refused:
                merge_to_file(
                    [run.root], tmp_path / "n.pftrace", MergeOptions(cut=cut, workers=workers)
                )
            said.append((refused.value.message, refused.value.hint))
        assert said[0] == said[1]
    assert not list(tmp_path.iterdir())


def test_a_run_and_files_that_share_no_clock_are_refused_unless_that_is_allowed(
    runs, files, tmp_path
):
    report = merge_to_file([runs[1], *files], tmp_path / "m.pftrace", UNALIGNED)
    assert sum("not aligned" in line for line in report.lines) >= 2
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


@pytest.mark.slow
def test_a_trace_processor_finds_the_same(run, tmp_path, load_trace: LoadTrace):  # noqa: F811  the fixture
    both(run, tmp_path, MergeOptions())
    queries = (
        (
            "SELECT s.ts, s.dur, s.name, t.name AS track FROM slice s JOIN track t ON s.track_id = "
            "t.id"
        ),
        "SELECT c.ts, c.value, t.name FROM counter c JOIN track t ON c.track_id = t.id",
        "SELECT name, COUNT(*) FROM process GROUP BY name",
        (
            "SELECT o.name, i.name, i.ts FROM flow f JOIN slice o ON f.slice_out = o.id JOIN slice "
            "i ON f.slice_in = i.id"
        ),
    )
    answers = []
    for name in ("whole", "parts"):
        client = load_trace(tmp_path / f"{name}.pftrace")
        assert errors(client) == []
        answers.append(
            [
                Counter(
                    json.dumps(row.__dict__, sort_keys=True, default=str)
                    for row in client.query(query)
                )
                for query in queries
            ]
        )
    assert all(answers[0])
    assert answers[0] == answers[1]

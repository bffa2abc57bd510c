"""One program in a run directory, in every form that rocprofv3 writes: the same records, and the
same merged trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profharness.analysis.time.linking import link_copies, link_kernels
from profharness.readers.perfetto import reader as pftrace
from profharness.rundir.manifest import Artifact, Manifest, PassRecord
from profharness.rundir.paths import RunDir
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.understand import report_run as understand
from profharness.understand.run_parts import keep_in_memory, read_run
from profharness.writers import perfetto
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import write_csv, write_json
from tests.fakes.rocprofv3_program import Program, program
from tests.readers.rocprofv3.tables_spelled import spelled

NOT_IN_CSV = frozenset(
    {"lds_bytes", "lds_dynamic_bytes", "bytes"}
)  # LDS as one figure, and no size of a copy
READ = ("_trace.csv", "_counter_collection.csv")


def run_of(root: Path, files: Sequence[Path], form: str) -> RunDir:
    """A run directory whose manifest names these files of artifacts/ as one process's, as the layer
    does.
    """
    run = RunDir.create(root)
    folder = run.artifacts_dir("rocprofv3", "node1", "4711")
    for path in files:
        path.rename(folder / path.name)
    artifacts = tuple(
        Artifact(
            path=run.relative(folder / path.name),
            layer="rocprofv3",
            format=form,
            pass_name="rocprofv3",
            host="node1",
            pid=4711,
            aside=path.suffix == ".csv" and not path.name.endswith(READ),
        )
        for path in files
    )
    run.write_manifest(
        Manifest(
            id="r",
            created="",
            profharness="0",
            kind="command",
            argv=(),
            artifacts=artifacts,
            passes=(PassRecord(name="rocprofv3", layers=("rocprofv3",)),),
        )
    )
    return run


def made(folder: Path, given: Program, form: str) -> RunDir:
    folder.mkdir()
    if form == "rocpd":
        return run_of(folder / "run", [write_rocpd(folder / "4711_results.db", given)], "rocpd")
    if form == "json":
        return run_of(
            folder / "run", [write_json(folder / "4711_results.json", given)], "rocprofv3-json"
        )
    return run_of(folder / "run", write_csv(folder, given, "7.0"), "rocprofv3-csv")


def merged(run: RunDir, target: Path) -> Trace:
    """The run's records as the merged Perfetto file has them."""
    perfetto.write(understand.load([run.root]).trace, target)
    return pftrace.read(target)


def launches(trace: Trace) -> set[tuple[int, int, str]]:
    """Start of each kernel and copy with the start and name of the call that launched it."""
    found = set()
    for table, links in ((trace.kernels, link_kernels(trace)), (trace.copies, link_copies(trace))):
        found |= {
            (start, int(trace.api.start_ns[call]), trace.strings[int(trace.api.name[call])])
            for start, call in zip(table.start_ns.tolist(), links.api.tolist(), strict=True)
            if call != NULL
        }
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_three_forms_of_one_program_are_one_trace(tmp_path: Path, seed: int) -> None:
    given = program(seed, 60)
    traces = {
        form: understand.load([made(tmp_path / form, given, form).root]).trace
        for form in ("rocpd", "json", "csv")
    }
    assert [len(trace.sources) for trace in traces.values()] == [1, 1, 1]
    assert spelled(traces["json"]) == spelled(traces["rocpd"])
    assert spelled(traces["csv"], without=NOT_IN_CSV) == spelled(
        traces["rocpd"], without=NOT_IN_CSV
    )
    assert {len(trace.kernels) for trace in traces.values()} == {60}
    assert {len(trace.copies) for trace in traces.values()} == {4}
    assert {len(trace.marks) for trace in traces.values()} == {4}
    counted = sum(len(kernel.counters) for kernel in given.kernels)
    assert counted > 0
    assert {len(trace.counters) for trace in traces.values()} == {counted}
    assert len(launches(traces["rocpd"])) == 64
    assert launches(traces["csv"]) == launches(traces["json"]) == launches(traces["rocpd"])
    facts = [
        [(d.index, d.identity, d.compute_units, d.dies, d.architecture) for d in trace.devices]
        for trace in traces.values()
    ]
    assert facts[0] == facts[1] == facts[2]


def test_their_merged_files_hold_the_same(tmp_path: Path) -> None:
    given = program(3, 60)
    traces = {
        form: merged(made(tmp_path / form, given, form), tmp_path / f"{form}.pftrace")
        for form in ("rocpd", "json", "csv")
    }
    assert spelled(traces["json"]) == spelled(traces["rocpd"])
    assert spelled(traces["csv"], without=NOT_IN_CSV) == spelled(
        traces["rocpd"], without=NOT_IN_CSV
    )
    assert len(traces["rocpd"].kernels) == 60
    assert sorted(traces["rocpd"].kernels.start_ns.tolist()) == sorted(
        kernel.start for kernel in given.kernels
    )
    assert launches(traces["csv"]) == launches(traces["json"]) == launches(traces["rocpd"])
    assert len(launches(traces["rocpd"])) == 64


def test_a_table_that_cannot_be_read_costs_only_what_is_in_it(tmp_path: Path) -> None:
    given = program(1)
    run = made(tmp_path / "csv", given, "csv")
    folder = run.artifacts_dir("rocprofv3", "node1", "4711")
    (folder / "4711_hip_api_trace.csv").write_text("")
    trace = understand.load([run.root]).trace
    assert (len(trace.kernels), len(trace.copies), len(trace.sources)) == (40, 4, 1)
    assert "hip" not in trace.strings.decode(trace.api.domain)
    assert [(p.severity, Path(p.source).name) for p in trace.problems] == [
        ("error", "4711_hip_api_trace.csv")
    ]


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: [path.write_text("") for path in folder.iterdir()],
        lambda folder: [path.unlink() for path in folder.iterdir()],
    ],
)
def test_a_set_of_which_nothing_can_be_read(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    run = made(tmp_path / "csv", replace(program(1), calls=()), "csv")
    damage(run.artifacts_dir("rocprofv3", "node1", "4711"))
    found = read_run(run.root, keep_in_memory)
    assert found.parts == []
    assert len(found.notes.problems) == 3


def test_devices_of_two_nodes_with_one_address_stay_two(tmp_path: Path) -> None:
    run = RunDir.create(tmp_path / "run")
    artifacts = []
    for host in ("node1", "node2"):
        folder = run.artifacts_dir("rocprofv3", host, "1")
        artifacts += [
            Artifact(
                path=run.relative(path),
                layer="rocprofv3",
                format="rocprofv3-csv",
                pass_name="rocprofv3",
                host=host,
                pid=4711,
            )
            for path in write_csv(folder, program(1), "6.3")
            if path.name.endswith(READ)
        ]
    run.write_manifest(
        Manifest(
            id="r",
            created="",
            profharness="0",
            kind="command",
            argv=(),
            artifacts=tuple(artifacts),
            passes=(PassRecord(name="rocprofv3", layers=("rocprofv3",)),),
        )
    )
    trace = understand.load([run.root]).trace
    assert [source.host for source in trace.sources] == ["node1", "node2"]
    assert sorted((device.host, device.index) for device in trace.devices) == [
        ("node1", "2"),
        ("node1", "3"),
        ("node2", "2"),
        ("node2", "3"),
    ]
    assert set(trace.strings.decode(trace.api.host)) == {"node1", "node2"}

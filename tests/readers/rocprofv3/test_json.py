from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.time.linking import link_kernels
from profharness.errors import InputError
from profharness.readers.rocprofv3 import json_reader as rocprofv3_json
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from tests.fakes.rocprofv3_files import document, write_json
from tests.fakes.rocprofv3_program import GpuAgent, Program, program
from tests.readers.rocprofv3.tables_spelled import spelled, totals


def saved(path: Path, content: dict[str, Any]) -> Path:
    path.write_text(json.dumps(content))
    return path


def process(content: dict[str, Any]) -> dict[str, Any]:
    return content["rocprofiler-sdk-tool"][0]


def said(trace: Trace, words: str) -> int:
    return next(problem.count for problem in trace.problems if words in problem.message)


@settings(max_examples=25)
@given(st.integers(50, 40_000), st.booleans(), st.sampled_from([None, 1]))
def test_blocks_of_any_size_give_the_same_trace(
    tmp_path_factory: pytest.TempPathFactory, block: int, compressed: bool, indent: int | None
) -> None:
    given_ = program(3, 12)
    path = write_json(
        tmp_path_factory.mktemp("j") / ("a.json.gz" if compressed else "a.json"),
        given_,
        indent=indent,
    )
    trace, whole = rocprofv3_json.read_blocks(path, block), rocprofv3_json.read(path)
    assert spelled(trace) == spelled(whole)
    assert (trace.devices, trace.streams, trace.problems) == (whole.devices, whole.streams, ())


def test_several_processes_are_several_sources_on_one_device(tmp_path: Path) -> None:
    one, two = program(1, 10, pid=50), program(2, 10, pid=60)
    trace = readers.read(write_json(tmp_path / "a.json", one, two))
    assert [source.pid for source in trace.sources] == [50, 60]
    assert (len(trace.kernels), len(trace.devices)) == (20, 2)
    assert trace.kernels.pid.tolist() == [50] * 10 + [60] * 10
    assert link_kernels(trace).linked.all()
    counted = {
        (int(trace.kernels.pid[row]), int(trace.kernels.dispatch[row]))
        for row in trace.counters.kernel
    }
    assert counted == {(p.pid, k.dispatch) for p in (one, two) for k in p.kernels if k.counters}


def test_the_same_process_id_on_two_hosts_links_to_its_own_calls(tmp_path: Path) -> None:
    trace = readers.read(
        write_json(
            tmp_path / "a.json", program(1, 10, pid=16, host="a"), program(2, 10, pid=16, host="b")
        )
    )
    links = link_kernels(trace)
    assert links.linked.all()
    assert (trace.api.source[links.api] == trace.kernels.source).all()
    assert {device.host for device in trace.devices} == {"a", "b"}
    assert len(trace.devices) == 4


def test_counter_only_runs_give_each_dispatch_once(tmp_path: Path) -> None:
    content = document(program(1, 12))
    process(content)["buffer_records"]["kernel_dispatch"] = []
    trace = readers.read(saved(tmp_path / "a.json", content))
    counted = [k for k in program(1, 12).kernels if k.counters]
    assert sorted(trace.kernels.start_ns.tolist()) == sorted(k.start for k in counted)
    assert len(trace.counters) == sum(len(k.counters) for k in counted)


def test_names_may_stand_behind_the_records(tmp_path: Path) -> None:
    content = document(program(1, 12))
    turned = {"rocprofiler-sdk-tool": [dict(reversed(list(process(content).items())))]}
    assert spelled(readers.read(saved(tmp_path / "a.json", turned))) == spelled(
        readers.read(saved(tmp_path / "b.json", content))
    )


def test_kernels_that_are_not_listed_are_named_by_number(tmp_path: Path) -> None:
    content = document(program(1, 12))
    process(content)["kernel_symbols"] = []
    trace = readers.read(saved(tmp_path / "a.json", content))
    assert said(trace, "named by their number") == 12
    assert set(totals(trace)) <= {"kernel 8", "kernel 10", "kernel 11"}
    assert set(trace.kernels.vgpr.tolist()) == {NULL}
    assert trace.kernels.lds_bytes.tolist() == [k.lds for k in program(1, 12).kernels]


def test_older_records_without_streams_use_the_queue(tmp_path: Path) -> None:
    content = document(program(1, 6))
    for record in process(content)["buffer_records"]["kernel_dispatch"]:
        del record["stream_id"]
    trace = readers.read(saved(tmp_path / "a.json", content))
    assert {trace.streams[i].name for i in trace.kernels.stream} == {"16"}


def test_huge_handles_stand_for_none(tmp_path: Path) -> None:
    content = document(program(1, 6))
    for record in process(content)["buffer_records"]["kernel_dispatch"]:
        record["stream_id"]["handle"] = 2**64 - 1
    assert len(readers.read(saved(tmp_path / "a.json", content)).kernels) == 6


def test_odd_grids_round_up_and_agents_may_be_unknown(tmp_path: Path) -> None:
    content = document(
        Program(
            agents=(GpuAgent(2, 37946),), symbols=program().symbols, kernels=program(1, 1).kernels
        )
    )
    record = process(content)["buffer_records"]["kernel_dispatch"][0]["dispatch_info"]
    record["grid_size"], record["workgroup_size"] = (
        {"x": 100, "y": 3, "z": 1},
        {"x": 64, "y": 2, "z": 1},
    )
    record["agent_id"]["handle"] = 5
    trace = readers.read(saved(tmp_path / "a.json", content))
    k = trace.kernels
    assert (k.workgroup_count_x[0], k.workgroup_count_y[0], k.workgroups[0]) == (2, 2, 4)
    assert (trace.devices[0].index, trace.devices[0].identity) == ("5", "")


def test_what_is_not_analysed_is_counted(tmp_path: Path) -> None:
    content = document(program(1, 3))
    process(content)["buffer_records"]["hipfile_api"] = [{"kind": 1, "size": 2}] * 5
    process(content)["buffer_records"]["pc_sample_host_trap"] = [{}] * 2
    trace = readers.read(saved(tmp_path / "a.json", content))
    assert said(trace, "hipfile_api 5, pc_sample_host_trap 2") == 7


def test_records_of_another_form_are_counted(tmp_path: Path) -> None:
    content = document(program(1, 4, counters=False))
    process(content)["buffer_records"]["kernel_dispatch"][1]["start_timestamp"] = "soon"
    trace = readers.read(saved(tmp_path / "a.json", content))
    assert (len(trace.kernels), said(trace, "not readable")) == (3, 1)


@settings(max_examples=40)
@given(st.floats(0.02, 0.999))
def test_a_file_cut_anywhere_is_read_or_refused_never_crashes(
    tmp_path_factory: pytest.TempPathFactory, share: float
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    text = json.dumps(document(program(1, 20)))
    path = folder / "a.json"
    path.write_text(text[: int(len(text) * share)])
    try:
        trace = readers.read(path)
    except InputError:
        assert int(len(text) * share) < text.index(
            '"dispatch_data"', text.index('"dispatch_data"') + 1
        )  # before the first record is whole
        return
    assert said(trace, "cut or damaged") == 1
    whole = {k.start for k in program(1, 20).kernels}
    assert set(trace.kernels.start_ns.tolist()) <= whole


def test_a_cut_gzip_says_so(tmp_path: Path) -> None:
    data = gzip.compress(json.dumps(document(program(1, 400))).encode())
    (tmp_path / "a.json.gz").write_bytes(data[:-3000])
    trace = readers.read(tmp_path / "a.json.gz")
    assert said(trace, "compressed data ends early") == 1


@pytest.mark.parametrize(
    "content",
    [
        '{"rocprofiler-sdk-tool": []}',
        '{"rocprofiler-sdk-tool": 5}',
        '{"rocprofiler-sdk-tool"',
        '{"rocprofiler-sdk-tool": [{"metadata": 3}]}',
    ],
)
def test_empty_and_broken_documents_are_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(InputError, match="no readable process"):
        rocprofv3_json.read(path)


def test_an_empty_run_is_an_empty_trace(tmp_path: Path) -> None:
    trace = readers.read(write_json(tmp_path / "a.json", Program()))
    assert (
        len(trace.kernels),
        len(trace.api),
        trace.problems,
        trace.sources[0].has_host_calls,
    ) == (0, 0, (), False)


def test_more_processes_than_a_file_of_its_size_has_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "many_results.json.gz"
    one = json.dumps({"metadata": {"pid": 7, "node": {"id": 0, "hostname": "n"}}, "agents": []})
    text = f'{{"rocprofiler-sdk-tool":[{",".join([one] * 2000)}]}}'
    path.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(InputError, match=r"more than 25\d processes"):
        readers.read(path)

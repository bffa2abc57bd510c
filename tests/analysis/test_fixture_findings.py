"""Findings of every recorded file: those that it deserves, with figures recomputed from the file's
own text, and no others.
"""

from __future__ import annotations

import csv
import gzip
import json
import re
from pathlib import Path

import msgspec
import pytest

from profharness.analysis.communication.records import Communication
from profharness.errors import InputError
from profharness.findings import Finding
from profharness.understand import report_run as understand
from tests.conftest import shared_path
from tests.recorded import TOGETHER, summary_of

pytestmark = TOGETHER

FOLDER = shared_path("fixtures")
PLACES = ("kineto", "rocm")
# files that are no traces, or say themselves that they are no longer whole; their readers' tests
# hold the sentences
UNREADABLE = frozenset(
    {
        "kineto/facts.json",
        "rocm/rocprof_compute/vcopy_MI100/log.txt",
        "rocm/rocprof_compute/vcopy_MI300X/log.txt",
        "rocm/rocprof_compute/vcopy_MI350_v3/log.txt",
        "rocm/rocprof_compute/vcopy_MI300X/timestamps.csv",
        "rocm/rocprof_compute/vcopy_MI350_v3/profiling_config.yaml",
        "rocm/rocprof_v1/fd_laplacian_2023/results.json",
        "rocm/rocprof_v1/mi300a_vecadd/input.txt",
        "rocm/rpd_legacy/matmul_result.rpd.gz",
    }
)
# byte for byte a file of rocm/rocprofv3/json
TWICE = "kineto/mi3xx_rocprofv3_aorta_908_results.json.gz"
CAUSAL = {
    "kineto/mi300x_qwen0.5b_prefill.json.gz": 8_066
}  # ns by which the last kernel outlasts the synchronisation that waited for it
NOTHING_RECORDED = frozenset({"rocm/rocprofv3/pftrace/mi300a_3634743_results_EMPTY.pftrace"})
NO_LAUNCH = {
    "rocm/amd_log_level/rocm4_5_level4_spack27535_malloc.log": 1
}  # an excerpt: a command's completion without its launch
# what could have been used better; analysis/efficiency/test_recorded.py works the figures out anew
USED_BETTER = {
    "kineto/a100_nccl_rank0of2.json.gz": {"layout-under-convolutions"},
    "kineto/a100_train_rank3of8_intus.json.gz": {"contention"},
    "kineto/h100_qwen0.5b_prefill.json.gz": {"copies-under-products"},
    "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz": {"layout-under-convolutions"},
    "kineto/mi300x_timesformer.json.gz": {"copies-under-products", "tile-waste"},
    "kineto/mi300x_xdit_sd3.5.json.gz": {"layout-under-convolutions"},
    "rocm/rocprofv3/json/908_results.json.gz": {"contention"},
}
# MI300X, and ROCm 6.4.1 by HIP's number, or by sysinfo.csv beside tables of dispatches
FAULTY_TIMES = (
    "kineto/mi300x_bert_small.json.gz",
    "kineto/mi300x_qwen0.5b_prefill.json.gz",
    "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz",
    "kineto/mi300x_timesformer.json.gz",
    "rocm/rocprof_compute/bank_conflict_MI300X/",
)
WITHOUT_DISPATCHES = ("sysinfo.csv", "roofline.csv", "pmc_kernel_top.csv")
# ns of first calls while the device had nothing to do: sums of their lengths in the files
START_UP = {
    "kineto/mi250_minitoy_rocm6.2.json.gz": {"start_up_ns": 6_543_109},
    "kineto/mi300x_sglang_graph_capture.json.gz": {"start_up_ns": 295_953},
    "rocm/rocprofv3/pftrace/mi300a_3648722_results.pftrace": {"left_out_ns": 629_902_236},
    "rocm/rocprofv3/rocpd/mi300x_batched_gemm_16_results.db.gz": {"left_out_ns": 363_398_910},
    "rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz": {
        "left_out_ns": 276_774_912 + 1_604_048
    },
}
# ns by which the last work of the steps outlasts their last mark: the end of the device records that
# calls inside of it launched, less the end of the mark
AHEAD = {
    "kineto/a100_multistream_graphs_rank0of16.json.gz": 1_232_450_000 - 1_074_204_000,
    "kineto/h100_qwen0.5b_prefill.json.gz": 49_378_903 - 47_151_395,
    "kineto/mi300x_qwen0.5b_prefill.json.gz": 46_892_225 - 42_738_946,
    "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz": 86_599_177 - 48_674_670,
    "kineto/v100_epoch_ns_timestamps.json.gz": 483_517_602 - 394_279_348,
    "kineto/v100_resnet50_old_schema.json.gz": 1_065_553_000 - 1_049_317_000,
}
SHARE = 0.1
IN_STEPS = frozenset(
    {
        "kineto/a100_multistream_graphs_rank0of16.json.gz",
        "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz",
    }
)
OF_SEVERAL_DEVICES = frozenset({"rocm/rocprofv3/json/908_results.json.gz"})
Spans = list[tuple[int, int]]


def bus_factor(kind: str, ranks: int | None) -> float:
    """nccl-tests, doc/PERFORMANCE.md: by what the size is multiplied that each rank must send at
    least.
    """
    if kind == "all_reduce":
        return 2 * ((ranks or 0) - 1) / (ranks or 1)
    return (
        ((ranks or 0) - 1) / (ranks or 1)
        if kind in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
        else 1.0
    )


def files() -> list[str]:
    found = [
        path
        for place in PLACES
        for path in (FOLDER / place).rglob("*")
        if path.is_file() and path.name != "MANIFEST.md" and "expected" not in path.parts
    ]
    return sorted({str(path.relative_to(FOLDER)) for path in found} - UNREADABLE - {TWICE})


def nanoseconds(digits: msgspec.Raw) -> int:
    """Microseconds as decimal text, exactly."""
    whole, _, part = bytes(digits).decode().partition(".")
    return int(whole) * 1000 + int((part + "000")[:3])


def merged(spans: Spans) -> Spans:
    found: Spans = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def length(spans: Spans) -> int:
    return sum(end - start for start, end in spans)


class Event(msgspec.Struct):
    """What is asked of an event; its times are the digits of the file."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    ts: msgspec.Raw = msgspec.Raw(b"0")
    dur: msgspec.Raw = msgspec.Raw(b"0")

    @property
    def start(self) -> int:
        return nanoseconds(self.ts)


class Document(msgspec.Struct):
    traceEvents: list[Event]  # noqa: N815  the file's own name


def kernels_of(name: str) -> tuple[Spans, Spans]:
    """Collectives, and all other kernels, from the text of the file, in ns."""
    path = FOLDER / name
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    if not re.search("nccl|rccl", text, re.IGNORECASE):
        return [], []
    if "rocprofiler-sdk-tool" in text[:1000]:
        tool = json.loads(text)["rocprofiler-sdk-tool"][0]
        names = {one["kernel_id"]: one["formatted_kernel_name"] for one in tool["kernel_symbols"]}
        rows = [
            (
                names[one["dispatch_info"]["kernel_id"]],
                int(one["start_timestamp"]),
                int(one["end_timestamp"]),
            )
            for one in tool["buffer_records"]["kernel_dispatch"]
        ]
    else:
        whole = msgspec.json.decode(text, type=list[Event] | Document)
        rows = [
            (one.name, one.start, one.start + nanoseconds(one.dur))
            for one in (whole if isinstance(whole, list) else whole.traceEvents)
            if one.ph == "X" and one.cat.lower() == "kernel"
        ]
    talks = [re.search("nccl|rccl", row[0], re.IGNORECASE) is not None for row in rows]
    return [row[1:] for row, talk in zip(rows, talks, strict=True) if talk], [
        row[1:] for row, talk in zip(rows, talks, strict=True) if not talk
    ]


@pytest.fixture(scope="module", params=files())
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, Finding], Communication | None]:
    name = request.param
    summary = summary_of(name)
    found = {one.id: one for one in summary.findings}
    assert len(found) == len(summary.findings)
    return name, found, summary.communication


def deserved(name: str, exposed: float) -> set[str]:
    expected = set(USED_BETTER.get(name, ()))
    if name.startswith(FAULTY_TIMES) and not name.endswith(WITHOUT_DISPATCHES):
        expected.add("known-fault")
    if name in NOTHING_RECORDED:
        expected.add("empty-trace")
    if name in CAUSAL:
        expected.add("clock-causality")
    if name in NO_LAUNCH or _unlinked(name):
        expected.add("launches-missing")
    if name in START_UP:
        expected.add("start-up")
    if name in AHEAD:
        expected.add("host-ahead")
    if exposed >= SHARE:
        expected.add("exposed-communication")
    return expected


def _unlinked(name: str) -> int:
    """Kernels without a launch, by the facts that were computed apart from this code."""
    facts = {one["file"]: one for one in json.loads((FOLDER / "kineto/facts.json").read_text())}
    return (
        int(facts.get(Path(name).name, {}).get("kernels_without_runtime", 0))
        if name.startswith("kineto/")
        else 0
    )


def _talked(name: str) -> tuple[int, int, float]:
    """Of the collectives: ns in which any ran, of these without any other kernel, and the latter
    over the time from the first kernel to the last.
    """
    talking, computing = kernels_of(name) if name.endswith(".json.gz") else ([], [])
    if not talking:
        return 0, 0, 0.0
    every = talking + computing
    alone = length(merged(every)) - length(merged(computing))
    return (
        length(merged(talking)),
        alone,
        alone / (max(end for _, end in every) - min(start for start, _ in every)),
    )


def test_each_file_has_the_findings_that_it_deserves(
    case: tuple[str, dict[str, Finding], Communication | None],
) -> None:
    name, found, talk = case
    total, alone, share = _talked(name)
    assert set(found) == deserved(name, share)
    assert (talk is not None and any(row.total_ns for row in talk.devices)) == (total > 0)
    if talk is not None and total and name not in OF_SEVERAL_DEVICES:
        (row,) = [row for row in talk.devices if row.total_ns]
        if (
            name in IN_STEPS
        ):  # the window is that of the steps, and collectives outside of it do not count
            assert 0 < row.exposed_ns == row.total_ns - row.overlapped_ns <= row.total_ns < total
        else:
            assert (row.total_ns, row.exposed_ns, row.overlapped_ns) == (
                total,
                alone,
                total - alone,
            )
        assert all(
            one.bus_bandwidth
            == pytest.approx(one.algorithm_bandwidth * bus_factor(one.kind, one.group_size))
            for one in talk.collectives
            if one.bus_bandwidth is not None and one.algorithm_bandwidth is not None
        )
    if name in NOTHING_RECORDED:
        assert found["empty-trace"].figures["launches"] == 0
        assert found["empty-trace"].severity == "error"
    if "clock-causality" in found:
        assert found["clock-causality"].figures["excess_ns"] == -CAUSAL[name]
    if "host-ahead" in found:
        assert found["host-ahead"].figures["most_ahead_ns"] >= AHEAD[name]
    if "start-up" in found:
        assert START_UP[name].items() <= found["start-up"].figures.items()
    if "launches-missing" in found:
        assert found["launches-missing"].figures["unlinked"] == (
            NO_LAUNCH.get(name) or _unlinked(name)
        )


@pytest.mark.parametrize("name", sorted(UNREADABLE))
def test_a_file_that_is_no_whole_trace_is_refused(shared: Path, name: str) -> None:
    with pytest.raises(InputError):
        understand.load([FOLDER / name])


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("rocm/rocprofv3/csv/gfx1151_decode_hip_api_trace.csv", 920),
        ("rocm/rocprofv3/docs_samples_0.5.0/hip_runtime_trace.csv", None),
    ],
)
def test_a_table_of_host_calls_alone_says_where_its_kernels_are(
    shared: Path, name: str, rows: int | None
) -> None:
    summary = understand.summarise(understand.load([FOLDER / name]))
    assert summary.findings == ()
    assert [one.message for one in summary.problems if "kernel_trace" in one.message] == [
        "the file holds host calls only: kernels stand in the kernel_trace file of the same process"
    ]
    if rows is not None:
        with (FOLDER / name).open(newline="") as file:
            assert sum(1 for _ in csv.DictReader(file)) == rows


CUT = (
    "kineto/h100_bert_small.json.gz",
    "kineto/mi250_minitoy_rocm6.2.json.gz",
    "rocm/rocprofv3/json/908_results.json.gz",
    "rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz",
    "rocm/rocprofv3/pftrace/mi300a_3648722_results.pftrace",
    "rocm/rocprof_v1/kokkos_2021/results.json",
)


@pytest.mark.parametrize("name", CUT)
def test_a_recorded_file_that_is_cut_is_called_truncated(
    shared: Path, tmp_path: Path, name: str
) -> None:
    """At seven tenths of its bytes: what was read is kept, or it is refused, but never passed off
    as whole.
    """
    whole = (FOLDER / name).read_bytes()
    path = tmp_path / Path(name).name
    path.write_bytes(whole[: len(whole) * 7 // 10])
    try:
        summary = understand.summarise(understand.load([path]))
    except InputError as error:
        refused = error.message
    else:
        told = [one for one in summary.findings if one.id == "truncated-file"]
        assert [one.severity for one in told] == ["error"], summary.problems
        assert summary.verdict is None
        return
    assert re.search(r"cut|damaged|ends|malformed|cannot be read", refused)

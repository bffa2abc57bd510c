"""Idle causes of recorded traces, to the nanosecond, against an oracle that shares nothing with the
package.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.records import IdleCauses
from profharness.analysis.time.idle import IdleAnalysis
from profharness.analysis.time.timeline import partition_windows
from profharness.stats import intervals
from tests.analysis.time import idle_oracle
from tests.analysis.time.idle_oracle import Recording
from tests.conftest import shared_path

RECORD, WAIT, QUEUED, LAUNCH, SYNC, HOST = (
    "no_host_record",
    "waiting_copy_or_event",
    "queued_gap",
    "launch_in_progress",
    "synchronisation",
    "host_not_ready",
)
PARTS = 100_000
WHOLE = (-PARTS // 10, PARTS + PARTS // 10)  # a tenth beyond the first and the last work
CASES = {
    # file, window in 100 000ths of the time from the first work of a device to its last, and the
    # causes that it has for sure
    ("kineto/h100_bert_small.json.gz", WHOLE): {RECORD, WAIT, LAUNCH, SYNC, HOST},
    ("kineto/h100_qwen0.5b_prefill.json.gz", (33_000, 37_000)): {QUEUED, LAUNCH, HOST},
    ("kineto/h100_qwen0.5b_prefill.json.gz", (96_000, 104_000)): {RECORD, QUEUED, SYNC},
    ("kineto/a100_event_sync.json.gz", WHOLE): {WAIT, LAUNCH, SYNC, HOST},
    ("kineto/a100_nccl_rank0of2.json.gz", (30_000, 31_500)): {QUEUED, LAUNCH, HOST},
    ("kineto/a100_multistream_graphs_rank0of16.json.gz", (33_333, 33_370)): {WAIT, QUEUED},
    ("kineto/v100_resnet50_old_schema.json.gz", (0, 600)): {LAUNCH, SYNC, HOST},
    ("kineto/mi300x_bert_small.json.gz", WHOLE): {RECORD, WAIT, QUEUED, LAUNCH, HOST},
    ("kineto/mi300x_qwen0.5b_prefill.json.gz", (33_000, 38_000)): {QUEUED, LAUNCH, HOST},
    ("kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz", (33_333, 36_000)): {RECORD, WAIT, QUEUED},
    ("kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz", (98_000, 100_010)): {WAIT, QUEUED, SYNC},
    ("kineto/mi300x_sglang_qwen3-8b_decode_hipgraph.json.gz", WHOLE): {
        RECORD,
        WAIT,
        QUEUED,
        LAUNCH,
        HOST,
    },
    ("kineto/mi300x_vllm_piecewise_graphs.json.gz", WHOLE): {RECORD, QUEUED},
    ("kineto/mi300x_timesformer.json.gz", WHOLE): {RECORD, WAIT, QUEUED, LAUNCH, HOST},
    ("kineto/mi250_minitoy_rocm6.2.json.gz", WHOLE): {WAIT, LAUNCH, HOST},
    ("kineto/mi210_gpu_only.json.gz", WHOLE): {RECORD, QUEUED, LAUNCH, SYNC, HOST},
    ("rocm/rocprofv3/rocpd/mi300x_batched_gemm_16_results.db.gz", WHOLE): {
        WAIT,
        QUEUED,
        LAUNCH,
        SYNC,
        HOST,
    },
    ("rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz", WHOLE): {
        WAIT,
        QUEUED,
        LAUNCH,
        SYNC,
        HOST,
    },
    ("rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz", (33_333, 66_667)): {LAUNCH, HOST},
    ("rocm/rocprof_v1/kokkos_2021/results.json", WHOLE): {RECORD, WAIT, QUEUED, LAUNCH, SYNC, HOST},
    ("rocm/rocprof_v1/mi300a_vecadd/results.json", WHOLE): {WAIT, LAUNCH, SYNC, HOST},
}


def recording(path: Path, folder: Path) -> Recording:
    if path.name.endswith(".db.gz"):
        return idle_oracle.of_rocpd(path, folder)
    return (
        idle_oracle.of_kineto(path) if path.name.endswith(".gz") else idle_oracle.of_rocprof(path)
    )


LONG = (
    "kineto/a100_multistream_graphs_rank0of16.json.gz",
    "kineto/a100_nccl_rank0of2.json.gz",
    "kineto/v100_resnet50_old_schema.json.gz",
    "kineto/mi300x_resnet_act_ckpt_rank0of8.json.gz",
)


@pytest.mark.parametrize(
    ("name", "part"),
    [pytest.param(*case, marks=[pytest.mark.slow] * (case[0] in LONG)) for case in CASES],
    ids=lambda value: str(value).rpartition("/")[2],
)
def test_causes_equal_those_of_an_oracle(shared, tmp_path, name, part):
    path = shared_path(f"fixtures/{name}")
    recorded, trace = recording(path, tmp_path), readers.read(path)
    known = IdleAnalysis(trace)
    (device,) = {piece.device for piece in recorded.pieces}
    (position,) = [number for number, one in enumerate(trace.devices) if one.index == device]
    first, last = (
        min(piece.start for piece in recorded.pieces),
        max(piece.end for piece in recorded.pieces),
    )
    low, high = (first + (last - first) * end // PARTS for end in part)
    expected = idle_oracle.causes(recorded, device, low, high)
    split = partition_windows(trace, intervals.window(low, high), (position,), known)
    assert split.idle_causes is not None
    found = {
        field.removesuffix("_ns"): getattr(split.idle_causes, field)
        for field in IdleCauses.__struct_fields__
    }
    found["not_recorded"] = split.idle_or_not_recorded_ns
    assert {cause: ns for cause, ns in found.items() if ns} == dict(expected)
    assert split.idle_ns == expected["micro"] + expected["macro"]
    assert CASES[name, part] <= set(expected)

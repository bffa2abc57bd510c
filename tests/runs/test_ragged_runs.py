"""A whole scan that compares our ragged batching with Triton's own, on real servers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from profharness.serving import repository
from profharness.understand import report_run as understand
from tests import started

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]


def test_triton_fills_batches_that_equal_lengths_alone_cannot(tmp_path: Path) -> None:
    """Each execution takes 20 ms whatever is in it, so that fuller batches are what is gained."""
    pytest.importorskip("pytriton", reason="needs the extra triton")
    words = "--via triton --model sleep:20ms --shape x:9 --ragged grouped,triton --concurrency 8"
    more = "--time 1 --warmup-time 0.3 --telemetry off --json -o run"
    done = started.run(
        "run",
        *words.split(),
        *more.split(),
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PROFHARNESS_CACHE": str(tmp_path / "cache")},
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = understand.summarise(understand.load([tmp_path / "run"]))
    grouped, triton = summary.ragged
    assert (grouped.backend, triton.backend) == ("sleep@grouped", "sleep@triton")
    for way in (grouped, triton):
        assert way.answers is not None
        assert way.answers.compared > 4
        assert way.answers.differ == 0
    assert grouped.lengths_per_execution is None
    assert triton.most_lengths is not None
    assert triton.most_lengths > 1
    assert triton.mixed_share is not None
    assert triton.mixed_share > 0.5
    assert triton.calls_per_execution == 1
    assert triton.requests_per_execution is not None
    assert grouped.requests_per_execution is not None
    assert triton.requests_per_execution > grouped.requests_per_execution
    shown = json.loads(done.stdout)["ragged"]
    assert [way["way"] for way in shown] == ["grouped", "triton"]
    page = (tmp_path / "run/report.html").read_text()
    assert "<h2>Ragged batches</h2>" in page
    root = tmp_path / "run/repository"
    assert sorted(path.name for path in root.iterdir()) == [
        "sleep@triton",
        "sleep@triton-for-other-backends",
    ]
    configuration = repository.find(root / "sleep@triton", "model")
    assert configuration is not None
    assert configuration.model.inputs[0].shape == (-1,)
    assert not list(root.rglob("__pycache__"))

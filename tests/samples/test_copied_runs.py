"""A run that was copied to another machine and is read there by another user, who may not write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.samples import another_user
from tests.samples.keep import unpacked


def test_another_user_elsewhere_reads_the_same(tmp_path: Path) -> None:
    run, out = unpacked("0.1-scan-onnxruntime", tmp_path / another_user.HERE), tmp_path / "out"
    out.mkdir()
    # no limit of time: on a busy machine it takes as long as it takes
    words = [sys.executable, "-m", another_user.__name__, str(run), str(out)]
    environment = {**os.environ, "TMPDIR": str(out)}  # where nobody else leaves anything
    reader = subprocess.run(words, capture_output=True, text=True, check=False, env=environment)
    moved = tmp_path / another_user.ELSEWHERE
    for path in (moved, *moved.rglob("*")):
        path.chmod(0o755)
    assert reader.returncode == 0, reader.stderr
    told = json.loads((out / "told.json").read_text())
    assert not told["may_write"]
    assert told["same"]
    assert told["figures"] > 0
    assert told["statuses"] == [0] * 5, reader.stderr
    # identifiers in it come from what it holds; all else has the same length
    merged = [(out / name).stat().st_size for name in ("there.pftrace", "here.pftrace")]
    assert abs(merged[0] - merged[1]) < 8
    assert told["into_the_run"] == 2, reader.stderr
    assert "Traceback" not in reader.stderr
    assert "copy it to a place that can be written" in reader.stderr

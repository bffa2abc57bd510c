"""`profharness.profile`: a block of this process under torch's profiler."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from pathlib import Path

import pytest

import profharness
from tests.needs import TORCH_HERE, packages

packages("torch")
pytestmark = [TORCH_HERE, pytest.mark.slow]


@pytest.fixture
def work():
    import torch

    left = torch.ones(8, 16)
    right = torch.ones(16, 4)
    return lambda: torch.mm(left, right)


def test_the_figures_of_a_block_are_those_of_its_trace(work, tmp_path: Path, capsys):
    with profharness.profile(tmp_path / "block") as recording:
        work()
        with pytest.raises(profharness.UsageError, match="still recorded"):
            recording.hotspots()
        work()
    row = recording.hotspots(by="op").set_index("name").loc["aten::mm"]
    assert row["calls"] == 2
    assert row["flops"] == 2 * 2 * 8 * 16 * 4
    assert recording.path == tmp_path / "block" / "trace.json.gz"
    again = profharness.read(recording.path)
    assert again.hotspots(by="op").equals(recording.hotspots(by="op"))
    assert recording.verdict is None
    assert recording.verdict_needs
    assert not recording.trace().marks.to_pandas()["name"].str.startswith("ProfilerStep").any()
    with pytest.raises(profharness.OutputExists), profharness.profile(tmp_path / "block"):
        pass


def test_steps_are_those_that_were_marked(work):
    with profharness.profile() as recording:
        for _ in range(3):
            with recording.step():
                work()
        work()
        recording.step()
        work()
        recording.step()
    marks = recording.trace().marks.to_pandas()
    steps = marks[marks["kind"] == "step"]
    assert steps["name"].tolist() == [f"ProfilerStep#{number}" for number in range(5)]
    ends = steps["start_ns"] + steps["dur_ns"]
    assert (steps["start_ns"].to_numpy()[1:] >= ends.to_numpy()[:-1]).all()
    with pytest.raises(profharness.UsageError, match="has ended"):
        recording.step()


def test_an_exception_goes_on_and_the_trace_is_kept(work):
    kept = []

    def failing() -> None:
        with profharness.profile() as recording:
            kept.append(recording)
            work()
            recording.step()
            print(1 / 0)

    with pytest.raises(ZeroDivisionError):
        failing()
    assert "aten::mm" in kept[0].hotspots(by="op")["name"].tolist()


def test_a_temporary_trace_goes_with_its_recording(work):
    with profharness.profile() as recording:
        work()
    folder = recording.path.parent
    assert folder.is_dir()
    del recording
    gc.collect()
    assert not folder.exists()


def test_a_second_recording_is_refused_while_one_is_on(work):
    with profharness.profile() as recording:
        again = profharness.profile()
        with pytest.raises(profharness.UsageError, match="already recording"):
            again.__enter__()
        work()
    assert len(recording.hotspots(by="op"))


def test_without_torch_the_error_says_what_to_do(tmp_path: Path):
    (tmp_path / "torch.py").write_text("raise ImportError('no such library')")
    code = (
        "import json, profharness\n"
        "try:\n"
        "    with profharness.profile(): pass\n"
        "except profharness.Unavailable as error:\n"
        "    print(json.dumps([error.message, error.hint]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    message, hint = json.loads(done.stdout)
    assert "torch cannot be imported (no such library)" in message
    assert "install torch" in hint

"""Servers of others under layers: each level of the load is a window of its own, in what is
recorded and in the merged trace.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest

from profharness.understand import report_run as understand
from profharness.understand.load import Loaded
from tests import started
from tests.fakes import stand_in_tools
from tests.writers import decode

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("served")]
FAKES = Path(__file__).parent.parent / "fakes"


def scan(folder: Path, server: str, layer: str, *words: str, **variables: str) -> Loaded:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    (folder / "body.json").write_text('{"x": 1}')
    done = started.run(
        "run",
        "--server-command",
        f"{sys.executable} {FAKES / server} {port}",
        "--ready",
        f"http://127.0.0.1:{port}/health",
        "--protocol",
        "http",
        "--body",
        "body.json",
        "--path",
        "/predict",
        "--time",
        "0.3",
        "--warmup-time",
        "0.1",
        "--profile",
        layer,
        "--telemetry",
        "off",
        "--quiet",
        "-o",
        "run",
        *words,
        cwd=folder,
        env={
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "PROFHARNESS_CACHE": str(folder / "cache"),
            **variables,
        },
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return understand.load([folder / "run"])


def levels(loaded: Loaded, pass_name: str) -> dict[str, tuple[int, int]]:
    """Begin and end of each level's window in the merged trace."""
    trace = loaded.trace
    marks = trace.marks.take(trace.marks.kind == trace.strings.find("point"))
    marks = marks.take(np.array([trace.sources[at].pass_name == pass_name for at in marks.source]))
    names = trace.strings.decode(marks.name)
    return {
        name: (int(start), int(start + length))
        for name, start, length in zip(names, marks.start_ns, marks.dur_ns, strict=True)
    }


@pytest.fixture(scope="module")
def torch_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Loaded, Path]:
    folder = tmp_path_factory.mktemp("torch")
    # levels of a second: what is recorded before and after one takes a tenth, on a busy machine two
    words = ("--concurrency", "1,4", "--time", "1")
    return scan(folder, "stand_in_http_model.py", "torch", *words), folder / "run"


def test_each_level_is_a_file_of_its_own_and_nothing_lies_between(
    torch_run: tuple[Loaded, Path],
) -> None:
    loaded, root = torch_run
    points = ["server-b1-c1", "server-b1-c4"]
    files = sorted((root / "artifacts" / "torch").rglob("*.json.gz"))
    beside = [
        json.loads(path.with_name(path.name + ".profharness.json").read_text()) for path in files
    ]
    assert [one["point"] for one in beside] == points
    assert [one["window"]["truncated"] for one in beside] == [False] * 2
    trace = loaded.trace
    products = trace.ops.take([name == "aten::mm" for name in trace.strings.decode(trace.ops.name)])
    assert set(trace.strings.decode(products.point)) == set(points)
    assert len(np.unique(products.tid)) >= 4, (
        "of all threads that serve, none of which is the main one"
    )
    windows = levels(loaded, "torch")
    assert set(windows) == set(points)
    for point, (begin, end) in windows.items():
        own = products.take([name == point for name in trace.strings.decode(products.point)])
        inside = (own.start_ns >= begin) & (own.start_ns <= end)
        assert inside.mean() > 0.8, (
            f"{point}: the window opens and closes with the level, not long before or after"
        )


def test_the_load_waits_for_the_window(torch_run: tuple[Loaded, Path]) -> None:
    """All of a level's requests are in its file: the recording had begun when the level's window
    did.
    """
    loaded, _ = torch_run
    trace = loaded.trace
    products = trace.ops.take([name == "aten::mm" for name in trace.strings.decode(trace.ops.name)])
    for point, (begin, end) in levels(loaded, "torch").items():
        requests = trace.requests.take(
            [
                trace.sources[at].pass_name == "torch" and trace.sources[at].point == point
                for at in trace.requests.source
            ]
        )
        answered = int(
            ((requests.sent_ns >= begin) & (requests.done_ns <= end) & (requests.ok == 1)).sum()
        )
        own = products.take([name == point for name in trace.strings.decode(products.point)])
        recorded = int(((own.start_ns >= begin) & (own.start_ns <= end)).sum())
        assert recorded >= answered, point
        assert answered >= 5


def test_the_merged_trace_names_client_and_server(torch_run: tuple[Loaded, Path]) -> None:
    _, root = torch_run
    got = decode.decode(root / "merged.pftrace")

    def role(process: str) -> str:
        """Pass and side, without the process's own name."""
        return " · ".join(process.split(" · ")[:2])

    names = [
        role(track.process.process_name)
        for track in got.tracks.values()
        if track.HasField("process")
    ]
    assert {"bare · client", "torch · client", "torch · server"} <= set(names)
    computing = {role(got.path(one.track)[0]) for one in got.slices if one.name == "aten::mm"}
    assert computing == {"torch · server"}
    loading = {role(got.path(one.track)[0]) for one in got.slices if one.name == "request"}
    assert loading == {"bare · client", "torch · client"}


def test_what_a_tool_recorded_whole_is_cut_by_the_levels(tmp_path: Path) -> None:
    """rocprofv3 knows no levels: what it traced outside of them is not counted with any."""
    tools = stand_in_tools.install(tmp_path / "opt", "7.0", ["rocprofv3"])
    loaded = scan(
        tmp_path,
        "stand_in_gpu_server.py",
        "rocprofv3",
        "--concurrency",
        "1,2",
        PATH=f"{tools}:{os.environ['PATH']}",
    )
    trace = loaded.trace
    windows = levels(loaded, "rocprofv3")
    assert set(windows) == {"server-b1-c1", "server-b1-c2"}
    points = trace.strings.decode(trace.kernels.point)
    assert len(trace.kernels) > 20
    for at, (start, point) in enumerate(zip(trace.kernels.start_ns, points, strict=True)):
        inside = [name for name, (begin, end) in windows.items() if begin <= start < end]
        assert ([point] if point else []) == inside, f"kernel {at}"
    assert "" in points, "the server warmed up before any level"
    assert (tmp_path / "run" / "merged.pftrace").exists()

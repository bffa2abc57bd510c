"""The onnxruntime hook in real scripts, and what workers use of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import bare_markers, needs

from .running import WRAPPERS, Runner, sidecar_of
from .test_torch_hook import clock_offset_ns, marker_bounds

needs.packages("onnxruntime")

MODEL = f"""
import gc, os, sys
sys.path.append({str(WRAPPERS / "hooks")!r})
import numpy as np, onnxruntime as ort
from profharness_hooks.onnxruntime_hook import identity_model
x = {{"x": np.zeros(1, np.float32)}}
def make(cls=ort.InferenceSession, **more): return cls(identity_model(), providers=["CPUExecutionProvider"], **more)
"""


def events(path: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in json.loads(path.read_text()) if event["name"] == name]


def test_every_session_of_a_command_is_kept(runner: Runner) -> None:
    ran = runner.run(
        runner.script(
            MODEL
            + """
class Mine(ort.InferenceSession):
    def __init__(self, data, **more):
        super().__init__(data, **more)
        self.extra = 5
options = ort.SessionOptions()
options.profile_file_prefix = "mine"
session, other = make(sess_options=options), make(Mine)
positional = ort.InferenceSession(identity_model(), None, ["CPUExecutionProvider"])
for i in range(3): session.run(["y"], x)
other.run(None, x)
print(isinstance(other, ort.InferenceSession), other.extra, ort.InferenceSession.__name__, options.enable_profiling, options.profile_file_prefix)
del positional; gc.collect()
sys.exit(4)
"""
        ),
        PROFHARNESS_LAYERS="onnxruntime",
    )
    assert (ran.status, ran.out, ran.err) == (4, "True 5 InferenceSession False mine\n", "")
    assert ran.hello["hooks"] == ["sitecustomize", "onnxruntime"]
    traces = {path.name: path for path in ran.files("onnxruntime")}
    assert set(traces) == {
        f"trace-{ran.pid}.json",
        f"trace-{ran.pid}-1.json",
        f"trace-{ran.pid}-2.json",
        f"marker-{ran.pid}.json",
    }
    assert [
        len(events(traces[f"trace-{ran.pid}{k}.json"], "model_run")) for k in ("", "-1", "-2")
    ] == [3, 1, 0]
    for name, path in traces.items():
        sidecar = sidecar_of(path)
        assert sidecar["tool"] == "onnxruntime"
        assert sidecar["start_ns"] > 1_600_000_000 * 10**9
        assert sidecar["role"] == ("marker" if name.startswith("marker") else "trace")
        assert sidecar["window"]["kind"] == "all"
    assert list(runner.folder.glob("*.json")) == []


def test_providers_that_onnxruntime_left_out_are_told(runner: Runner) -> None:
    ran = runner.run(
        runner.script(
            MODEL
            + """
import warnings
warnings.simplefilter("ignore")
gpu = ("MIGraphXExecutionProvider", {"device_id": "0"})
lost = ort.InferenceSession(identity_model(), providers=[gpu, "CPUExecutionProvider"])
kept, plain = make(), ort.InferenceSession(identity_model(), None)
"""
        ),
        PROFHARNESS_LAYERS="onnxruntime",
    )
    assert (ran.status, ran.err) == (0, "")
    (message,) = ran.hello["messages"]
    assert message == (
        "the script asked onnxruntime for MIGraphXExecutionProvider, and the session runs on "
        "CPUExecutionProvider"
    )


def test_markers_bound_the_clock_to_two_microseconds(runner: Runner) -> None:
    offset, width = clock_offset_ns()
    end = (
        f"{bare_markers.NOTE}from profharness_hooks.onnxruntime_hook import marker_session\n"
        f"marker_session('out/marker.json')\n{bare_markers.NOTE}"
    )
    ran = runner.run(runner.script(MODEL + bare_markers.ONNXRUNTIME + end), hooked=False)
    assert (ran.status, ran.err) == (0, "")
    path = runner.folder / "out" / "marker.json"
    start = sidecar_of(path)["start_ns"]
    runs = [
        (start + event["ts"] * 1000, start + (event["ts"] + event["dur"]) * 1000)
        for event in events(path, "model_run")
    ]
    low, high = marker_bounds(runs, sidecar_of(path)["markers"])
    # stamps are cut to whole microseconds, so a start may be one early, and an end up to two
    assert high - low <= bare_markers.widest_onnxruntime(bare_markers.noted(runner.folder))
    assert low - width - 3000 <= offset <= high + width + 3000
    assert sidecar_of(path)["role"] == "marker"


def test_profile_of_a_workers_session(runner: Runner) -> None:
    ran = runner.run(
        runner.script(
            MODEL
            + """
from profharness_hooks.onnxruntime_hook import SessionProfile
for point in ("b1", "b2"):
    profile = SessionProfile("out/" + point + ".json", point=point)
    options = ort.SessionOptions()
    profile.configure(options)
    session = make(sess_options=options)
    session.run(None, x)
    profile.finish(session)
"""
        ),
        PROFHARNESS_LAYERS="onnxruntime",
        PROFHARNESS_WORKER="1",
    )
    assert (ran.status, ran.err) == (0, "")
    assert ran.hello["hooks"] == ["sitecustomize"]
    assert "onnxruntime" in ran.hello["frameworks"]
    assert sorted(path.name for path in (runner.folder / "out").iterdir()) == [
        f"b{n}.json{suffix}" for n in (1, 2) for suffix in ("", ".profharness.json")
    ]
    for point in ("b1", "b2"):
        path = runner.folder / "out" / f"{point}.json"
        assert sidecar_of(path)["point"] == point
        assert len(events(path, "model_run")) == 1
    assert ran.files("onnxruntime") == []


def test_script_that_profiles_its_session_keeps_its_file(runner: Runner) -> None:
    ran = runner.run(
        runner.script(
            MODEL
            + """
options = ort.SessionOptions()
options.enable_profiling, options.profile_file_prefix = True, "mine"
session = make(sess_options=options)
session.run(None, x)
print(session.end_profiling().startswith("mine"))
"""
        ),
        PROFHARNESS_LAYERS="onnxruntime",
    )
    assert (ran.status, ran.out, ran.err) == (0, "True\n", "")
    assert ran.files("onnxruntime") == []
    assert len(list(runner.folder.glob("mine*.json"))) == 1
    assert "stood back" in ran.hello["messages"][0]


def test_bad_model_raises_as_ever_and_forked_children_are_left_alone(runner: Runner) -> None:
    ran = runner.run(
        runner.script(
            MODEL
            + """
try:
    ort.InferenceSession(b"no model", providers=["CPUExecutionProvider"])
except Exception as error:  # its type is what is asked
    print(type(error).__name__)
pid = os.fork()
if pid == 0:
    make().run(None, x)
    os._exit(3)  # onnxruntime itself aborts a forked child that ends normally
print(os.waitpid(pid, 0)[1] >> 8)
"""
        ),
        PROFHARNESS_LAYERS="onnxruntime",
    )
    assert ran.out == "InvalidProtobuf\n3\n"
    assert ran.status == 0
    # onnxruntime itself says so about any session that was to be profiled and has no model
    assert [line for line in ran.err.splitlines() if "no model was loaded" not in line] == []
    assert ran.files("onnxruntime") == []


def test_unwritable_folder_leaves_the_session_alone(runner: Runner) -> None:
    (runner.folder / "occupied").write_text("")
    ran = runner.run(
        runner.script(MODEL + "print(make().run(None, x)[0])"),
        PROFHARNESS_LAYERS="onnxruntime",
        PROFHARNESS_ARTIFACTS=str(runner.folder / "occupied"),
    )
    assert (ran.status, ran.out) == (0, "[0.]\n")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("profharness: ")

"""What gets into a profiler's way, as the probe sees it: made-up installations, nothing loaded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.node.probe import AttachedProfiler, parse

from .running import CLEAN, WRAPPERS
from .test_capture import load

sys.path.append(str(WRAPPERS))
probe_profilers = load("../probe_profilers")

SDK = "librocprofiler-sdk.so"


@pytest.mark.parametrize(
    ("variables", "names"),
    [
        ({"LD_PRELOAD": "/opt/rocm/lib/rocprofiler-sdk/librocprofiler-sdk-tool.so"}, ["rocprofv3"]),
        ({"LD_PRELOAD": "/a/libtcmalloc.so:/b/librocprof-sys-dl.so.1"}, ["rocprof-sys"]),
        ({"LD_PRELOAD": "/a/libtcmalloc.so /b/libomnitrace-dl.so"}, ["omnitrace"]),
        ({"ROCP_TOOL_LIBRARIES": "/a/librocprofiler-sdk-tool.so.1"}, ["rocprofv3"]),
        ({"HSA_TOOLS_LIB": "librocprofiler64.so.1"}, ["rocprof"]),
        ({"CUDA_INJECTION64_PATH": "/opt/nsys/libToolsInjection64.so"}, ["nsys"]),
        # libraries that profile nothing by themselves
        ({"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}, []),
        (
            {"LD_PRELOAD": "/opt/rocm/lib/librocprofiler-sdk.so:/opt/rocm/lib/librocprofiler64.so"},
            [],
        ),
        ({"ROCP_TOOL_LIBRARIES": "/opt/omnistat/libomnistat_helper.so"}, []),
        ({"HSA_TOOLS_LIB": "", "LD_PRELOAD": ""}, []),
        ({"HSA_TOOLS_REPORT_LOAD_FAILURE": "librocprofiler64.so"}, []),
    ],
)
def test_profilers_in_the_environment(variables: dict[str, str], names: list[str]) -> None:
    assert [one["name"] for one in probe_profilers.attached(variables)] == names


def test_one_profiler_is_named_once_per_variable() -> None:
    twice = "/a/librocprof-sys-dl.so:/a/librocprof-sys-rt.so"
    found = probe_profilers.attached({"LD_PRELOAD": twice, "ROCP_TOOL_LIBRARIES": twice})
    assert [(one["variable"], one["library"]) for one in found] == [
        ("LD_PRELOAD", "librocprof-sys-dl.so"),
        ("ROCP_TOOL_LIBRARIES", "librocprof-sys-dl.so"),
    ]


def touched(path: Path, *, executable: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755 if executable else 0o644)
    return path


class Python:
    """An environment with torch and ROCm's wheels, as far as files tell."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.packages = folder / "lib" / "python3.12" / "site-packages"
        self.packages.mkdir(parents=True)
        self.rocprofv3 = touched(folder / "bin" / "rocprofv3", executable=True)
        monkeypatch.setattr(
            probe_profilers, "_folder_of", lambda name: os.path.realpath(self.packages / name)
        )

    def tree(self, name: str) -> Path:
        """A wheel's tree, with library and tool; returns the library."""
        touched(self.packages / name / "bin" / "rocprofv3", executable=True)
        library = touched(self.packages / name / "lib" / f"{SDK}.1.3.2")
        library.with_name(SDK).symlink_to(library.name)
        return library.resolve()

    def torch(self, *, begins: str = "", version: str = "") -> Path:
        folder = self.packages / "torch"
        touched(folder / "_rocm_init.py").write_text(begins)
        touched(folder / "version.py").write_text(version)
        return folder


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Python:
    return Python(tmp_path / "venv", monkeypatch)


INIT = "import rocm_sdk\nrocm_sdk.initialize_process(preload_shortnames=['rocprofiler-sdk'])\n"


def test_what_torch_brings_along(python: Python) -> None:
    core = python.tree("_rocm_sdk_core")
    folder = python.torch(version="cuda = None\nhip: Optional[str] = '7.2.53150-a1b2'\n")
    assert probe_profilers.torch_files() == {
        "folder": str(folder.resolve()),
        "sdk": "",  # ROCm's wheel lies beside it, and its first lines do not load it
        "roctracer": "",
        "hip": "7.2.53150-a1b2",
    }
    python.torch(begins=INIT, version="hip = None\n")
    assert probe_profilers.torch_files()["sdk"] == str(core)
    assert probe_profilers.torch_files()["hip"] == ""
    touched(folder / "lib" / "libroctracer64.so")
    touched(folder / "lib" / "librocprofiler-sdk-roctx.so")
    assert probe_profilers.torch_files()["sdk"] == str(core)
    own = touched(folder / "lib" / SDK)
    assert probe_profilers.torch_files()["sdk"] == str(own.resolve())
    assert probe_profilers.torch_files()["roctracer"] == "yes"


def test_the_library_of_a_tool_in_a_tree(tmp_path: Path) -> None:
    """/opt/rocm is a link to the tree, and the library one to its version."""
    tree = tmp_path / "rocm-7.2.0"
    place = touched(tree / "bin" / "rocprofv3")
    library = touched(tree / "lib" / f"{SDK}.1.1.0")
    library.with_name(SDK).symlink_to(library.name)
    (tmp_path / "rocm").symlink_to(tree)
    assert probe_profilers.sdk_of_tool(str(tmp_path / "rocm" / "bin" / "rocprofv3")) == str(library)
    assert probe_profilers.sdk_of_tool(str(place)) == str(library)
    assert probe_profilers.sdk_of_tool(str(touched(tmp_path / "other" / "bin" / "rocprofv3"))) == ""


def test_the_program_of_the_wheel_that_torch_loads_is_taken(python: Python) -> None:
    """The one on the PATH would start that of rocm-sdk-devel, with another copy of the library."""
    place = str(python.rocprofv3)
    core = python.tree("_rocm_sdk_core")
    assert probe_profilers.sdk_of_tool(place) == str(core)
    devel = python.tree("_rocm_sdk_devel")
    assert probe_profilers.sdk_of_tool(place) == str(devel)
    assert probe_profilers.beside_torch(place) == place  # this torch loads none
    python.torch(begins=INIT)
    assert probe_profilers.beside_torch(place) == str(
        python.packages / "_rocm_sdk_core" / "bin" / "rocprofv3"
    )
    facts = probe_profilers.profilers({"rocprofv3": {"path": probe_profilers.beside_torch(place)}})
    assert facts["tool_sdk"] == facts["torch"]["sdk"] == str(core)


@pytest.mark.parametrize("begins", ["", INIT])
def test_the_wheel_of_all_files_is_not_unpacked_by_asking(python: Python, begins: str) -> None:
    """The program on the PATH unpacks rocm-sdk-devel first, and would be ended in the midst."""
    core = python.tree("_rocm_sdk_core")
    python.torch(begins=begins)
    place = str(python.rocprofv3)
    assert probe_profilers.beside_torch(place) == place
    (python.packages / "rocm_sdk_devel").mkdir()
    own = probe_profilers.beside_torch(place)
    assert own == str(python.packages / "_rocm_sdk_core" / "bin" / "rocprofv3")
    assert probe_profilers.sdk_of_tool(own) == str(core)


def test_one_file_under_two_names_is_one_copy(python: Python) -> None:
    core, devel = python.tree("_rocm_sdk_core"), python.tree("_rocm_sdk_devel")
    devel.unlink()
    os.link(core, devel)
    python.torch(begins=INIT)
    place = str(python.rocprofv3)
    assert probe_profilers.beside_torch(place) == place
    facts = probe_profilers.profilers({"rocprofv3": {"path": place}})
    assert facts["tool_sdk"] == facts["torch"]["sdk"] == str(core)


def test_a_copy_of_another_tree_stays_one(python: Python, tmp_path: Path) -> None:
    """Torch has a library that no wheel's tool loads: the tool stays, and both are told."""
    own = touched(python.torch() / "lib" / SDK).resolve()
    system = touched(tmp_path / "rocm-7.0" / "lib" / SDK)
    place = str(touched(tmp_path / "rocm-7.0" / "bin" / "rocprofv3", executable=True))
    assert probe_profilers.beside_torch(place) == place
    facts = probe_profilers.profilers({"rocprofv3": {"path": place}})
    assert (facts["tool_sdk"], facts["torch"]["sdk"]) == (str(system), str(own))


def test_locks_that_this_user_cannot_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe_profilers.foreign_locks(str(tmp_path / "none")) == []
    lock = touched(tmp_path / "locks" / "gpu0.lock")
    assert probe_profilers.foreign_locks(str(lock.parent)) == []
    # another user's: root opens every file, so that the answer of the kernel is given here
    monkeypatch.setattr(probe_profilers.os, "getuid", lambda: lock.stat().st_uid + 1)
    assert probe_profilers.foreign_locks(str(lock.parent)) == []  # it may be opened all the same
    monkeypatch.setattr(probe_profilers.os, "access", lambda *_: False)
    (found,) = probe_profilers.foreign_locks(str(lock.parent))
    assert found["path"] == str(lock)
    assert found["owner"]


def test_the_probe_tells_them() -> None:
    answer = subprocess.run(
        [sys.executable, "-I", str(WRAPPERS / "probe.py")],
        env={
            **CLEAN,
            "ROCP_TOOL_LIBRARIES": "/x/librocprofiler-sdk-tool.so",
            "ROCPROFILER_REGISTER_LIBRARY": "/x/librocprofiler-sdk.so",
        },
        capture_output=True,
        timeout=120,
        check=True,
    )
    facts = parse(answer.stdout).profilers
    assert facts.attached == (
        AttachedProfiler("ROCP_TOOL_LIBRARIES", "librocprofiler-sdk-tool.so", "rocprofv3"),
    )
    assert facts.register_library == "/x/librocprofiler-sdk.so"
    assert "torch" not in json.loads(answer.stdout).get("frameworks", {})

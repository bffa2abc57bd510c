"""The probe of a node: over a made-up sysfs, with stand-in tools on PATH, and for real."""

from __future__ import annotations

import errno
import grp
import json
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.node.probe import parse
from profharness.telemetry.sources.amd.devices import find_dies
from tests.telemetry import emulated

from .running import CLEAN, WRAPPERS
from .test_capture import load

sys.path.append(str(WRAPPERS))
probe_access = load("../probe_access")
probe_devices = load("../probe_devices")
probe_tools = load("../probe_tools")
probe = load("../probe")


def ask(*options: str, **variables: str) -> dict[str, Any]:
    answer = subprocess.run(
        [sys.executable, "-I", str(WRAPPERS / "probe.py"), *options],
        env={**CLEAN, **variables},
        capture_output=True,
        timeout=120,
        check=True,
    )
    assert answer.stderr == b""
    parse(answer.stdout)
    return json.loads(answer.stdout)


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def amd_node(
    root: Path, number: int, *, minor: int, bus: int, target: int, simds: int, name: str = ""
) -> None:
    node = f"class/kfd/kfd/topology/nodes/{number}"
    write(
        root,
        {
            f"{node}/properties": f"cpu_cores_count 0\nsimd_count {simds}\nsimd_per_cu 4\n"
            f"location_id {bus << 8}\ndomain 0\ndrm_render_minor {minor}\n"
            f"gfx_target_version {target}\nunique_id 11651590505119483656\n",
            f"{node}/name": "aldebaran\n",
            f"{node}/mem_banks/0/properties": "heap_type 1\nsize_in_bytes 68702699520\nflags 0\n",
        },
    )
    if name:
        write(root, {f"class/drm/renderD{minor}/device/product_name": f"{name}\n"})


@pytest.fixture
def sysfs(tmp_path: Path) -> Path:
    """Two dies of an MI250X behind a CPU node, and a third device whose properties the job may not
    read.
    """
    root = tmp_path / "sys"
    write(
        root,
        {
            "class/kfd/kfd/topology/nodes/0/properties": "cpu_cores_count 64\nsimd_count 0\n",
            "module/amdgpu/version": "6.8.5\n",
        },
    )
    amd_node(root, 1, minor=128, bus=0xC1, target=90010, simds=440, name="AMD INSTINCT MI250X")
    amd_node(root, 2, minor=129, bus=0xC6, target=90010, simds=440)
    write(root, {"class/kfd/kfd/topology/nodes/3/gpu_id": "4711\n"})
    return root


def test_amd_devices_from_sysfs(sysfs: Path) -> None:
    found = ask("--sysfs", str(sysfs))["devices"]
    assert found[0] == {
        "index": 0,
        "kind": "rocm",
        "name": "AMD INSTINCT MI250X",
        "identity": "0000:c1:00.0",
        "memory_bytes": 68702699520,
        "compute_units": 110,
        "architecture": "gfx90a",
        "driver": "6.8.5",
    }
    assert (found[1]["index"], found[1]["name"], found[1]["identity"]) == (
        1,
        "aldebaran",
        "0000:c6:00.0",
    )
    assert [device["kind"] for device in found] == ["rocm", "rocm", "cpu"]


def test_partitions_go_by_the_names_that_the_telemetry_gives_them(tmp_path: Path) -> None:
    for mode in ("CPX", "SPX"):
        tree = emulated.mi300x(tmp_path / mode, "1.6", mode)
        probed = [
            device["identity"]
            for device in ask("--sysfs", str(tree.root))["devices"]
            if device["kind"] == "rocm"
        ]
        assert probed == [die.identity for die in find_dies(str(tree.root))]
        assert len(set(probed)) == {"CPX": 8, "SPX": 1}[mode]


@pytest.mark.parametrize(
    ("version", "name"),
    [
        (90010, "gfx90a"),
        (90402, "gfx942"),
        (90008, "gfx908"),
        (110501, "gfx1151"),
        (100300, "gfx1030"),
        (0, ""),
    ],
)
def test_architecture_names(version: int, name: str) -> None:
    assert probe_devices.architecture(version) == name


def test_pci_address_is_unpacked() -> None:
    assert (
        probe_devices.address({"location_id": 0xC1 << 8 | 3 << 3 | 1, "domain": 2})
        == "0002:c1:03.1"
    )


def tool(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(("old", "architecture"), [(False, "sm_80"), (True, "")])
def test_nvidia_devices_from_its_tool(tmp_path: Path, old: bool, architecture: str) -> None:
    refuse = (
        (
            'case "$1" in *compute_cap*) echo "Field \\"compute_cap\\" is not a valid field to '
            'query."; exit 2;; esac'
        )
        if old
        else ""
    )
    cell = "" if old else ", 8.0"
    tool(
        tmp_path / "bin",
        "nvidia-smi",
        f'{refuse}\necho "0, NVIDIA A100-SXM4-40GB, GPU-1b2c, 40960, 550.54.15{cell}"',
    )
    found = ask("--sysfs", str(tmp_path), PATH=f"{tmp_path / 'bin'}:/usr/bin:/bin")["devices"]
    assert found[0] == {
        "index": 0,
        "kind": "cuda",
        "name": "NVIDIA A100-SXM4-40GB",
        "identity": "GPU-1b2c",
        "memory_bytes": 40960 << 20,
        "compute_units": None,
        "architecture": architecture,
        "driver": "550.54.15",
    }


@pytest.mark.slow
def test_tools_tell_their_versions(tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    tool(
        bin_,
        "rocprofv3",
        'printf "    version: 1.0.0\\n    git_revision: 17a5b5\\n    rocm_version: 7.0.1\\n"',
    )
    tool(bin_, "nsys", 'echo "NVIDIA Nsight Systems version 2024.5.1.113-245134619542v0"')
    tool(bin_, "perf_analyzer", 'echo "Perf Analyzer Version 2.59.1 (commit 1e3f7a)" >&2')
    tool(bin_, "rocprof", "exit 1")
    tool(bin_, "rocprof-compute", 'echo "The pandas>=1.4.3 package was not found"; exit 1')
    tool(bin_, "ncu", "sleep 60")
    found = probe_with_short_patience(tmp_path)
    assert (found["rocprofv3"]["path"], found["rocprofv3"]["version"]) == (
        str(bin_ / "rocprofv3"),
        "1.0.0",
    )
    assert found["nsys"]["version"] == "2024.5.1.113"
    assert found["perf_analyzer"]["version"] == "2.59.1"
    assert (found["rocprof"]["path"], found["rocprof"]["version"]) == (str(bin_ / "rocprof"), "")
    assert found["ncu"]["version"] == found["rocprof-compute"]["version"] == ""


def test_a_tool_belongs_to_the_rocm_that_it_lies_in(tmp_path: Path) -> None:
    (tmp_path / "rocm-6.1.3").mkdir()
    tool(tmp_path / "rocm-6.1.3" / "bin", "rocprof", "exit 0")
    tool(tmp_path / "bin", "rocprofv3", "exit 0")
    assert probe_tools.rocm_of(str(tmp_path / "rocm-6.1.3" / "bin" / "rocprof")) == "6.1.3"
    assert probe_tools.rocm_of(str(tmp_path / "bin" / "rocprofv3")) == ""


@pytest.mark.parametrize(
    ("program", "told_by", "text"),
    [
        ("rocm-7.2.1/libexec/rocprofiler-compute/rocprof-compute", "rocm-7.2.1/.info/version", ""),
        ("core-7.2/bin/rocprofv3", "", ""),
        ("rocm/bin/rocprofv3", "rocm/.info/version", "7.2.0-43"),
        (
            "venv/bin/rocprofv3",
            "venv/lib/python3.11/site-packages/_rocm_sdk_core_nightly/.info/version",
            "7.2.0a20260515",
        ),
        (
            "venv/bin/rocprof-compute",
            "venv/lib/python3.12/site-packages/rocm_sdk_core-7.2.0rc0.dist-info/METADATA",
            "",
        ),
        # a distribution's own Python, and an environment with the name of another release
        (
            "local/bin/rocprof-sys-attach",
            "local/lib/python3.12/dist-packages/_rocm_sdk_core/.info/version",
            "7.2.0",
        ),
        (
            "local/bin/rocprof-sys-attach",
            "local/lib64/python3.12/site-packages/_rocm_sdk_core/.info/version",
            "7.2.0",
        ),
        (
            "rocm-6.4/bin/rocprof-sys-attach",
            "rocm-6.4/lib/python3.12/site-packages/_rocm_sdk_core/.info/version",
            "7.2.0",
        ),
    ],
)
def test_every_way_in_which_rocm_is_packaged_tells_its_release(
    tmp_path: Path, program: str, told_by: str, text: str
) -> None:
    path = tmp_path / program
    path.parent.parent.mkdir(parents=True)
    tool(path.parent, path.name, "exit 0")
    if told_by:
        (tmp_path / told_by).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / told_by).write_text(text)
    assert probe_tools.rocm_of(str(path))[:3] == "7.2"


@pytest.mark.parametrize(
    ("text", "release"),
    [
        ("         version: 1.3.2\n    rocm_version: 7.14.0\n", "7.14.0"),
        ("rocprof-sys-sample v1.7.0 (rev: 1a2b, tag: x, x86_64, rocm: v7.14.x)", "7.14"),
        ("rocprofiler-compute version: 3.7.0 (release)", ""),
    ],
)
def test_newer_tools_tell_the_release_that_they_came_with(text: str, release: str) -> None:
    assert probe_tools.rocm_in(text) == release


def probe_with_short_patience(folder: Path) -> dict[str, Any]:
    text = (
        f"import sys; sys.path.insert(0, {str(WRAPPERS)!r}); import json, probe_tools; "
        "probe_tools.TOOL_SECONDS = 2; print(json.dumps(probe_tools.tools()))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", text],
        env={**CLEAN, "PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
        capture_output=True,
        timeout=60,
        check=True,
    )
    return json.loads(answer.stdout)


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("ROCm version: 6.1.3\n", "6.1.3"),
        ("apptainer version 1.4.5-1.sid", "1.4.5"),
        ("slurm 22.05.8", "22.05.8"),
        ("nothing", ""),
        ("[I] at 10.0.0.1.\nrocprofiler-compute version: 3.0.0 (release)", "3.0.0"),
        ("v2.1", "2.1"),
    ],
)
def test_version_in_an_answer(text: str, version: str) -> None:
    assert probe_tools.version_in(text) == version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("[ERROR] The 'pandas>=1.4.3' package was not found", ""),
        ("[2026-08-11 10:22:33.123] [error] unknown option: --version", ""),
        ("ROCm version: 6.1.3\n", "6.1.3"),
    ],
)
def test_what_a_failing_tool_names_is_not_its_version(text: str, version: str) -> None:
    assert probe_tools.version_in(text, anywhere=False) == version


def test_rocm_version_from_its_folder(tmp_path: Path) -> None:
    write(tmp_path / "opt" / "rocm-6.2.4", {"bin/x": ""})
    (tmp_path / "rocm").symlink_to(tmp_path / "opt" / "rocm-6.2.4")
    assert ask(ROCM_PATH=str(tmp_path / "rocm"))["rocm_version"] == "6.2.4"
    write(tmp_path / "opt" / "rocm-6.2.4", {".info/version": "6.2.4-120\n"})
    assert ask(ROCM_PATH=str(tmp_path / "rocm"))["rocm_version"] == "6.2.4"
    assert ask(ROCM_PATH=str(tmp_path / "absent"))["rocm_version"] == ""


def test_facts_of_this_node(tmp_path: Path) -> None:
    write(tmp_path / "dev", {"kfd": "", "dri/renderD128": ""})
    found = ask("--dev", str(tmp_path / "dev"))
    assert found["v"] == 1
    assert found["host"] == os.uname().nodename
    assert found["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert found["cpus_allowed"] == sorted(os.sched_getaffinity(0))
    assert found["memory_bytes"] == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert found["packages"]["msgspec" if "msgspec" in found["packages"] else "numpy"]
    assert found["clocks"]["CLOCK_BOOTTIME"] >= 1
    assert found["permissions"]["kfd_readable"]
    assert found["permissions"]["render_nodes"] == ["renderD128"]
    assert found["devices"][-1]["kind"] == "cpu"


def refusing(monkeypatch: pytest.MonkeyPatch, refusals: dict[str, int]) -> None:
    """Those files refuse to be opened with these errnos: to root, who runs the tests, everything
    opens.
    """
    real = os.open

    def opened(path: str, flags: int, *more: Any, **named: Any) -> int:
        if number := refusals.get(str(path)):
            assert flags & (os.O_RDWR | os.O_CLOEXEC) == os.O_RDWR | os.O_CLOEXEC
            raise OSError(number, os.strerror(number), path)
        return real(path, flags, *more, **named)

    monkeypatch.setattr(os, "open", opened)


def test_what_this_user_may_open(
    tmp_path: Path, sysfs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev, proc = tmp_path / "dev", tmp_path / "proc"
    write(dev, {"kfd": "", "dri/renderD128": "", "dri/renderD129": "", "dri/card0": ""})
    write(
        proc,
        {
            "sys/kernel/perf_event_paranoid": "4\n",
            "self/status": "Name:\tpython\nCapEff:\t0000004000000000\n",
        },
    )
    write(sysfs, {"class/drm/renderD128/device/vendor": "0x1002\n"})
    (dev / "kfd").chmod(0o660)
    refusing(
        monkeypatch, {str(dev / "kfd"): errno.EACCES, str(dev / "dri/renderD129"): errno.EPERM}
    )
    group = grp.getgrgid((dev / "kfd").stat().st_gid).gr_name
    found = probe_access.permissions(str(sysfs), str(proc), str(dev))
    assert [
        (Path(file["path"]).name, file["error"], file["group"], file["vendor"])
        for file in found["files"]
    ] == [
        ("kfd", "EACCES", group, ""),
        ("renderD128", "", group, "0x1002"),
        ("renderD129", "EPERM", group, ""),
    ]
    assert (found["files"][0]["mode"], found["files"][0]["gid"]) == ("0660", os.getegid())
    assert (found["kfd_present"], found["kfd_readable"], found["render_readable"]) == (
        True,
        False,
        False,
    )
    assert (
        found["amdgpu"],
        found["hidden_devices"],
        found["perf_event_paranoid"],
        found["perfmon"],
    ) == (True, 1, 4, True)
    assert group in found["groups"]
    assert found["user_name"] == pwd.getpwuid(os.getuid()).pw_name


@pytest.mark.parametrize(
    ("capabilities", "may"),
    [
        ("0000004000000000", True),
        ("0000000000200000", True),
        ("000001ffffffffff", True),
        ("0000000000000000", False),
        ("0000003fffdfffff", False),
    ],
)
def test_capabilities_that_go_before_the_kernels_setting(
    tmp_path: Path, capabilities: str, may: bool
) -> None:
    write(tmp_path, {"self/status": f"CapInh:\tffffffffffffffff\nCapEff:\t{capabilities}\n"})
    assert probe_access.may_count(str(tmp_path)) is may


def test_a_node_without_device_files(tmp_path: Path) -> None:
    found = probe_access.permissions(str(tmp_path), str(tmp_path), str(tmp_path))
    assert (
        found["files"],
        found["kfd_present"],
        found["amdgpu"],
        found["hidden_devices"],
        found["perf_event_paranoid"],
    ) == ([], False, False, 0, None)


def test_a_group_of_which_the_session_knows_nothing_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kfd"
    path.write_text("")
    name = pwd.getpwuid(os.getuid()).pw_name
    for members, listed in (([name, "eve"], True), (["eve"], False)):
        monkeypatch.setattr(
            grp,
            "getgrgid",
            lambda gid, members=members: grp.struct_group(("render", "x", gid, members)),
        )
        assert (
            probe_access.device_file(str(path), "")["group"],
            probe_access.device_file(str(path), "")["listed"],
        ) == ("render", listed)


def test_a_file_that_really_refuses_its_user(tmp_path: Path) -> None:
    """Without the capability to override modes root is a user like any other, whose class has no
    permission here.
    """
    write(tmp_path, {"kfd": ""})
    (tmp_path / "kfd").chmod(0o060)
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if drop and shutil.which(drop[0]) is None:
        pytest.skip("needs setpriv (util-linux)")
    done = subprocess.run(
        [*drop, sys.executable, "-I", str(WRAPPERS / "probe.py"), "--dev", str(tmp_path)],
        env=CLEAN,
        capture_output=True,
        timeout=120,
        check=True,
    )
    permissions = parse(done.stdout).permissions
    assert [(file.path, file.error, file.mode) for file in permissions.files] == [
        (str(tmp_path / "kfd"), "EACCES", "0060")
    ]
    assert not permissions.perfmon


def test_cpu_limit_of_the_control_group(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"proc/self/cgroup": "0::/user/job\n", "sys/fs/cgroup/user/job/cpu.max": "250000 100000\n"},
    )
    assert probe.cpu_limit(str(tmp_path / "sys"), str(tmp_path / "proc")) == 2.5
    write(tmp_path, {"sys/fs/cgroup/user/job/cpu.max": "max 100000\n"})
    assert probe.cpu_limit(str(tmp_path / "sys"), str(tmp_path / "proc")) is None
    assert probe.cpu_limit(str(tmp_path / "none"), str(tmp_path / "none")) is None


@pytest.mark.slow
def test_frameworks_are_asked_in_a_child() -> None:
    torch = pytest.importorskip("torch")
    found = ask("--frameworks")["frameworks"]
    assert found["torch"]["version"] == torch.__version__
    assert len(found["torch"]["devices"]) == torch.cuda.device_count()
    assert "CPUExecutionProvider" in found["onnxruntime"].get("providers", ["CPUExecutionProvider"])

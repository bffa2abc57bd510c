"""`--container-gpu`: which words an image gets for the node's devices, and that the host's ROCm goes
only into an image that has none.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.measure import containers
from profharness.measure.containers import container_of, gpu_words
from profharness.measure.planning import plan_run
from profharness.options.request import Request
from tests.fakes import stand_in_apptainer

ROCM, NV, BOTH = ("rocm",), ("cuda",), ("rocm", "cuda")


@pytest.mark.parametrize(
    ("wanted", "kinds", "options", "needs_hosts", "words"),
    [
        ("auto", ROCM, (), True, "--rocm"),
        ("auto", ROCM, (), False, ""),
        ("auto", NV, (), True, "--nv"),
        ("auto", BOTH, (), True, "--rocm --nv"),
        ("auto", BOTH, (), False, "--nv"),
        ("auto", (), (), True, ""),
        ("auto", ROCM, ("--rocm",), True, ""),
        ("auto", ROCM, ("--contain",), True, "--rocm"),
        ("auto", ROCM, ("--contain",), False, "--bind /dev/kfd --bind /dev/dri"),
        ("auto", ROCM, ("-C",), False, "--bind /dev/kfd --bind /dev/dri"),
        ("rocm", (), (), False, "--rocm"),
        ("rocm", NV, (), True, "--rocm"),
        ("nv", ROCM, (), True, "--nv"),
        ("none", BOTH, ("--contain",), False, ""),
    ],
)
def test_the_words_for_a_container(
    wanted: str, kinds: tuple[str, ...], options: tuple[str, ...], needs_hosts: bool, words: str
) -> None:
    assert " ".join(gpu_words(wanted, kinds, options, needs_hosts=needs_hosts)) == words


@pytest.mark.parametrize(
    ("environment", "flags", "started"),
    [
        ("ROCM_PATH={folder}\n", {}, [()]),
        ("ROCM_PATH=/nowhere\n", {}, [(), ("--rocm",)]),
        ("ROCM_PATH=/nowhere\n", {"container_gpu": "none"}, [()]),
        ("ROCM_PATH={folder}\n", {"container_gpu": "rocm"}, [("--rocm",)]),
    ],
    ids=["its own ROCm", "none", "none and none wanted", "asked for"],
)
def test_the_hosts_rocm_goes_into_an_image_that_has_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    flags: dict[str, Any],
    started: list[tuple[str, ...]],
) -> None:
    """What the probe was started with, each time; the workload is as the last one."""
    programs = stand_in_apptainer.install(tmp_path / "programs")
    image = stand_in_apptainer.image(tmp_path / "i.sif", environment.format(folder=tmp_path))
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(containers, "_FILES", {"rocm": str(tmp_path / "kfd")})
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    request = Request(
        command=("true",), container=str(image), output=str(tmp_path / "run"), **flags
    )
    run_plan = plan_run(request)
    calls = stand_in_apptainer.calls(image)
    assert [tuple({"--rocm"} & set(call)) for call in calls] == started
    argv = run_plan.launcher.composed(Command(("true",))).argv
    assert tuple({"--rocm"} & set(argv)) == started[-1]


@pytest.mark.parametrize(
    ("settings", "kind", "options"),
    [
        ({}, "rocm", ()),
        ({}, "cuda", ("--nv",)),
        ({"container_gpu": "none"}, "rocm", ()),
        (
            {"container_gpu": "nv", "container_arg": ("--bind=/scratch",)},
            "rocm",
            ("--nv", "--bind=/scratch"),
        ),
    ],
)
def test_a_plan_for_a_node_of_this_kind(
    settings: dict[str, Any], kind: str, options: tuple[str, ...]
) -> None:
    request = Request(command=("true",), container="no.sif", **settings)
    container = container_of(request, (), dry=True, kind=kind)
    assert container is not None
    assert container.options == options


def test_it_goes_with_a_container() -> None:
    with pytest.raises(UsageError, match="goes with --container"):
        Request(command=("true",), container_gpu="rocm")

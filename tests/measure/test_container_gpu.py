"""`--container-gpu`: which words an image gets for the node's devices, and how it is asked whether
it has a ROCm of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness.errors import UsageError
from profharness.measure.containers import brings_rocm, container_of, gpu_words
from profharness.options.request import Request

ROCM, NV, BOTH = ("rocm",), ("cuda",), ("rocm", "cuda")


@pytest.mark.parametrize(
    ("wanted", "kinds", "options", "own_rocm", "words"),
    [
        ("auto", ROCM, (), False, "--rocm"),
        ("auto", ROCM, (), True, ""),
        ("auto", NV, (), False, "--nv"),
        ("auto", BOTH, (), False, "--rocm --nv"),
        ("auto", BOTH, (), True, "--nv"),
        ("auto", (), (), False, ""),
        ("auto", ROCM, ("--rocm",), False, ""),
        ("auto", ROCM, ("--contain",), False, "--rocm"),
        ("auto", ROCM, ("--contain",), True, "--bind /dev/kfd --bind /dev/dri"),
        ("auto", ROCM, ("-C",), True, "--bind /dev/kfd --bind /dev/dri"),
        ("rocm", (), (), True, "--rocm"),
        ("rocm", NV, (), False, "--rocm"),
        ("nv", ROCM, (), False, "--nv"),
        ("none", BOTH, ("--contain",), True, ""),
    ],
)
def test_the_words_for_a_container(
    wanted: str, kinds: tuple[str, ...], options: tuple[str, ...], own_rocm: bool, words: str
) -> None:
    assert " ".join(gpu_words(wanted, kinds, options, own_rocm=own_rocm)) == words


def test_a_folder_is_looked_into(tmp_path: Path) -> None:
    assert not brings_rocm(str(tmp_path), "", dry=True)
    (tmp_path / "opt" / "rocm-6.4.1").mkdir(parents=True)
    assert brings_rocm(str(tmp_path), "", dry=True)


def test_an_image_file_is_asked(tmp_path: Path) -> None:
    """The program that stands for Apptainer here knows one question, and the image that has it."""
    program, log = tmp_path / "apptainer", tmp_path / "log"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {log}\n[ "$*" = "exec {tmp_path}/with.sif test -e /opt/rocm" ]\n'
    )
    program.chmod(0o755)
    for name in ("with.sif", "without.sif"):
        (tmp_path / name).touch()
    assert brings_rocm(f"{tmp_path}/with.sif", str(program), dry=True)
    assert not brings_rocm(f"{tmp_path}/without.sif", str(program), dry=False)
    assert log.read_text().count("exec ") == 2
    # neither without a program, nor by fetching an image for a plan
    assert not brings_rocm(f"{tmp_path}/with.sif", "", dry=True)
    assert not brings_rocm("docker://rocm/pytorch", str(program), dry=True)
    assert log.read_text().count("exec ") == 2


@pytest.mark.parametrize(
    ("settings", "kind", "options"),
    [
        ({}, "rocm", ("--rocm",)),
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
    with pytest.raises(UsageError, match="--container-gpu go with --container"):
        Request(command=("true",), container_gpu="rocm")

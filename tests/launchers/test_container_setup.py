"""What containers get from options and sites, and the lines that activate an image's environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.command import Command
from profharness.launchers.container_setup import (
    ACTIVATE,
    Setup,
    first_lines,
    merged,
    of_launcher,
    set_inside,
)
from profharness.measure.containers import container_of
from profharness.options.request import Request
from tests.fakes import stand_in_apptainer


def test_what_was_asked_for_goes_before_the_site(tmp_path: Path) -> None:
    here = str(tmp_path)
    site = Setup(
        binds=(here, f"{here}/nothing", f"{here}:/inside:ro"),
        variables={"A": "site", "B": "site"},
        init="site",
        caches="/tmp/site",
        verb="run",
    )
    assert merged(Setup(), site) == Setup(
        binds=(here, f"{here}:/inside:ro"),
        variables=site.variables,
        init="site",
        caches="/tmp/site",
        verb="run",
    )
    asked = Setup(binds=("/a", here), variables={"B": "asked"}, init="auto", caches="/tmp/asked")
    both = merged(asked, site)
    assert both.binds == ("/a", here, f"{here}:/inside:ro")
    assert both.variables == {"A": "site", "B": "asked"}
    assert (both.caches, first_lines(both)) == ("/tmp/asked", ACTIVATE)


def test_the_file_in_which_mpi_finds_its_ranks(tmp_path: Path) -> None:
    info = tmp_path / "spool" / "apinfo"
    info.parent.mkdir()
    assert of_launcher({"PALS_APINFO": str(info)}) == ()
    info.touch()
    folder = str(info.parent)
    assert of_launcher({"PALS_APINFO": str(info), "PALS_SPOOL_DIR": folder}) == (folder,)
    assert of_launcher({}) == ()


def test_a_variable_that_the_user_has_set_stays(tmp_path: Path) -> None:
    setup = Setup(variables={"A": "1", "B": "1", "C": "1"}, caches="/c")
    outside = {"A": "own", "SINGULARITYENV_B": "own", "MIOPEN_USER_DB_PATH": "/own"}
    assert set_inside(setup, outside) == {"C": "1", "MIOPEN_CUSTOM_CACHE_DIR": "/c"}


def test_a_container_of_options_and_site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "PALS_APINFO"):
        monkeypatch.delenv(name, raising=False)
    request = Request(
        command=("true",),
        container="i.sif",
        container_bind=("/usr,/etc:/inside",),
        container_caches="caches",
        container_run=True,
    )
    container = container_of(request, (), dry=True, site=Setup(variables={"NCCL_DEBUG": "INFO"}))
    assert container is not None
    command = container.around(Command(("true",), {"NCCL_DEBUG": "WARN"}))
    assert command.argv[1] == "run"
    bound = [
        here for word, here in zip(command.argv, command.argv[1:], strict=False) if word == "--bind"
    ]
    assert bound[-3:] == [str(tmp_path / "caches"), "/usr", "/etc:/inside"]
    assert command.env == {
        f"{'APPTAINERENV'}_{name}": value
        for name, value in (
            ("MIOPEN_USER_DB_PATH", str(tmp_path / "caches")),
            ("MIOPEN_CUSTOM_CACHE_DIR", str(tmp_path / "caches")),
            ("NCCL_DEBUG", "WARN"),
        )
    }
    assert not (tmp_path / "caches").exists()  # a plan makes nothing


def test_a_bind_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = stand_in_apptainer.install(tmp_path / "programs")
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    request = Request(command=("true",), container="/", container_bind=("/no/such",))
    with pytest.raises(UsageError, match="there is no /no/such"):
        container_of(request, (), dry=False)


@pytest.mark.parametrize(
    ("with_conda", "venv", "said"),
    [
        (". {here}/conda pytorch", True, "conda pytorch"),
        ("", True, "venv"),
        ("", False, ""),
    ],
)
def test_the_lines_that_activate(tmp_path: Path, with_conda: str, venv: bool, said: str) -> None:
    """By bash, as in a container; the places of virtual environments are of this test."""
    (tmp_path / "conda").write_text('SAID="conda $1"\n')
    if venv:
        (tmp_path / "venv/bin").mkdir(parents=True)
        (tmp_path / "venv/bin/activate").write_text("SAID=venv\n")
    lines = ACTIVATE.replace("/user-software", str(tmp_path / "venv")).replace("/opt/venv", "/no")
    prelude = Apptainer("i.sif", prelude=lines).around(Command(("sh", "-c", "echo $SAID"))).argv
    at = prelude.index("bash")
    words = ["bash", prelude[at + 1], f"export SAID; {prelude[at + 2]}", *prelude[at + 3 :]]
    environment = {"PATH": "/usr/bin:/bin", "WITH_CONDA": with_conda.format(here=tmp_path)}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == said

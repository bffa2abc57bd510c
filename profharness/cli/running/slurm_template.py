"""`profharness slurm-template`: job scripts to copy and change, as they come with profharness."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from profharness.cli.running.answers import near
from profharness.errors import OutputExists
from profharness.rundir.outputs import make_folder
from profharness.rundir.paths import write_atomic
from profharness.rundir.shown.screen import mention

_PLAIN = re.compile(r"[A-Za-z0-9_./@+-]+")
_HARNESS = '"${PROFHARNESS:=profharness}"'
_CORES = '"${PROFHARNESS_CORES=}"'
_MASK = '"${PROFHARNESS_MASK:=ROCR_VISIBLE_DEVICES}"'
_SCRIPTS = '"${PROFHARNESS_SCRIPTS:=${SLURM_SUBMIT_DIR:-.}/wrappers/slurm}"'


def slurm_template(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder for the scripts.")
    ] = Path("profharness-slurm"),
    site: Annotated[
        str,
        typer.Option("--site", help="Whose cores select_gpu binds to: lumi, or a .toml file."),
    ] = "",
    force: Annotated[bool, typer.Option("--force", help="Overwrite scripts that exist.")] = False,
) -> None:
    """Write job scripts for Slurm into a folder, to copy and to change: one per tool, a job that
    traces one rank of eight, a job whose harness lives in the container, one that sets the harness
    up, and select_gpu, which gives each rank its device and cores. They start this installation,
    and need a shell alone.

    \b
    profharness slurm-template -o jobs
    """
    from profharness.launchers.wrappers import wrappers_dir
    from profharness.node.sites import read_site

    wrappers = wrappers_dir()
    scripts = [p for p in sorted((wrappers / "slurm").iterdir()) if p.suffix in (".sh", ".sbatch")]
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in (*scripts, wrappers / "select_gpu")
    }
    if site:
        devices = read_site(site, os.environ).devices
        texts["select_gpu"] = (
            texts["select_gpu"]
            .replace(_CORES, f'"${{PROFHARNESS_CORES={" ".join(devices.cores)}}}"')
            .replace(_MASK, f'"${{PROFHARNESS_MASK:={devices.mask}}}"')
        )
    make_folder(output, "name another place with --output")
    if not force and (there := [name for name in texts if (output / name).exists()]):
        raise OutputExists(
            f"{output / there[0]} exists",
            "name another folder with -o, or overwrite it with --force",
        )
    for name, text in texts.items():
        write_atomic(output / name, _filled(text, output.absolute()).encode(), mode=0o777)
        typer.echo(near(output / name))


def _filled(text: str, folder: Path) -> str:
    """A script that finds this installation and its neighbours. A path with other characters than
    those of plain words stands in no script: it is told what to set.
    """
    for line, name, value in (
        (_HARNESS, "PROFHARNESS", (sys.executable, "-m", "profharness")),
        (_SCRIPTS, "PROFHARNESS_SCRIPTS", (str(folder),)),
    ):
        if line in text and all(map(_PLAIN.fullmatch, value)):
            text = text.replace(line, f'"${{{name}:={" ".join(value)}}}"')
        elif line in text:
            mention(f"profharness: {value[0]} cannot stand in a script; set {name} in the job")
    return text

"""A stand-in for Apptainer: `exec` and `run` with the options below, binds that must exist, the image's own
programs and environment. It isolates nothing.

An image is a folder: its `bin` stands first on PATH, and `environment` holds NAME=VALUE lines that
replace the host's. As with the real one, the host's variables come along (but for --cleanenv), and
APPTAINERENV_NAME wins over both. Calls are kept in `calls.jsonl`.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

SWITCHES = ("--rocm", "--nv", "--cleanenv", "--userns")
WITH_VALUE = ("--bind", "--pwd")


def install(folder: Path, name: str = "apptainer") -> Path:
    """The folder, with the program in it, for PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -S -E "{Path(__file__).resolve()}" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def image(folder: Path, environment: str = "") -> Path:
    """An image with this Python in it."""
    (folder / "bin").mkdir(parents=True)
    for name in ("python", "python3"):
        program = folder / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        program.chmod(0o755)
    (folder / "environment").write_text(environment)
    return folder


def calls(folder: Path) -> list[list[str]]:
    """What the program was called with, oldest first."""
    return [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]


def fatal(text: str) -> NoReturn:
    print(f"FATAL:   {text}", file=sys.stderr)
    raise SystemExit(255)


def main(words: Sequence[str]) -> NoReturn:
    if not words or words[0] not in ("exec", "run"):
        fatal(f"unknown command {words[:1]}")
    rest, binds, cwd, clean = list(words[1:]), [], "", False
    while rest and rest[0].startswith("-"):
        option, given, value = rest.pop(0).partition("=")
        if option in SWITCHES and not given:
            clean = clean or option == "--cleanenv"
        elif option in WITH_VALUE:
            value = value if given else rest.pop(0)
            if option == "--bind":
                binds += value.split(",")
            else:
                cwd = value
        else:
            fatal(f"unknown flag: {option}")
    if len(rest) < 2:
        fatal("requires at least 2 arg(s)")
    root = Path(rest.pop(0))
    if not root.is_dir():
        fatal(
            f"could not open image {root}: failed to retrieve path for {root}: "
            "no such file or directory"
        )
    for bind in binds:
        if not Path(bind.partition(":")[0]).exists():
            fatal(
                "container creation failed: mount hook function failure: "
                f"mount source {bind} doesn't exist"
            )
    with (root / "calls.jsonl").open("a") as log:
        log.write(json.dumps(list(words)) + "\n")
    environment = (
        {"HOME": os.environ.get("HOME", "/")}
        if clean
        else {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("APPTAINERENV_")
        }
    )
    environment.update(
        dict(line.split("=", 1) for line in (root / "environment").read_text().splitlines())
    )
    environment.update(
        {
            name.removeprefix("APPTAINERENV_"): value
            for name, value in os.environ.items()
            if name.startswith("APPTAINERENV_")
        }
    )
    environment.update(PATH=f"{root / 'bin'}:/usr/bin:/bin", APPTAINER_CONTAINER=str(root))
    program = shutil.which(rest[0], path=environment["PATH"])
    if program is None:
        fatal(f'"{rest[0]}": executable file not found in $PATH')
    if cwd:
        os.chdir(cwd)
    os.execve(program, rest, environment)


if __name__ == "__main__":
    main(sys.argv[1:])

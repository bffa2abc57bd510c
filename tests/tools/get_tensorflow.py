"""Set up the interpreter with TensorFlow that tests use: `python tests/tools/get_tensorflow.py
[FOLDER]`.

TensorFlow does not share one environment well with the other frameworks, so it gets one of its own:
a virtual environment with tensorflow-cpu and nvidia-pytriton, every package in the version of
tensorflow-packages.txt, nothing resolved. FOLDER is .tools/tf in the checkout unless given; one
that has these versions already is left as it is. What cannot be installed is said, and is no
failure: the tests that need it skip with the reason.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from pathlib import Path

PACKAGES = Path(__file__).resolve().with_name("tensorflow-packages.txt")
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "tf"


def interpreter(folder: Path = DEFAULT) -> Path:
    """The Python of the environment."""
    return folder / "bin" / "python"


def is_complete(folder: Path = DEFAULT) -> bool:
    """Whether these very versions were installed there, for an interpreter that is still on this
    machine.
    """
    record = folder / "installed"
    return (
        record.is_file()
        and record.read_bytes() == PACKAGES.read_bytes()
        and interpreter(folder).exists()
    )


def install(folder: Path) -> str:
    """What went wrong; empty where it is there."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no virtual environment can be made: {error}"
    # pip is that of this environment; to compile every module would take longer than all the rest
    steps = (
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(interpreter(folder)),
            "install",
            "--quiet",
            "--no-deps",
            "--no-compile",
            "--requirement",
            str(PACKAGES),
        ],
        [str(interpreter(folder)), "-c", "import tensorflow, pytriton.triton, tritonclient.grpc"],
    )  # compiles what is used
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, check=False)
        if done.returncode:
            errors = [
                line for line in done.stderr.splitlines() if "rror" in line
            ] or done.stderr.splitlines()
            return (
                f"TensorFlow cannot be installed: {(errors or ['no reason was given'])[-1].strip()}"
            )
    (folder / "installed").write_bytes(PACKAGES.read_bytes())
    return ""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    trouble = "" if is_complete(folder) else install(folder)
    if trouble:
        print(trouble, file=sys.stderr)
    print(folder)


if __name__ == "__main__":
    main()

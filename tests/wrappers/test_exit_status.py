"""The hooks' note of the exit status, in real processes that end in every way Python knows."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from .running import Ran, Runner

CRASH = """
import atexit, ctypes, sys
libc = ctypes.CDLL(None)
libc.__cxa_atexit.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
libc.__cxa_atexit(ctypes.cast(libc.abort, ctypes.c_void_p), None, None)
"""


def noted(ran: Ran) -> int | None:
    path = ran.folder / "hooks" / f"bye-{ran.pid}.status"
    if not path.exists():
        return None
    (number,) = struct.unpack("i", path.read_bytes())
    return int(number)


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ("pass", 0),
        ("import sys; sys.exit(3)", 3),
        ("raise SystemExit(4)", 4),
        ("import sys; sys.exit('no')", 1),
        ("raise ValueError('own')", 1),
        ("import atexit, sys\natexit.register(lambda: print('mine'))\nsys.exit(5)", 5),
        ("import sys\ntry:\n    sys.exit(9)\nexcept SystemExit:\n    pass", 0),
        ("import sys; sys.exit(256 + 6)", 256 + 6),
    ],
)
@pytest.mark.parametrize("crash", ["", CRASH])
def test_every_end_of_python(runner: Runner, script: str, status: int, crash: str) -> None:
    ran = runner.run(runner.script(crash + script), PROFHARNESS_EXIT_STATUS="1")
    assert noted(ran) == status
    assert ran.status == (-6 if crash else status & 0xFF)
    assert json.loads((ran.folder / "hooks" / f"bye-{ran.pid}.json").read_text())["pid"] == ran.pid


@pytest.mark.parametrize(
    "script", ["import os; os._exit(3)", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)"]
)
def test_no_note_of_an_end_that_was_not_pythons_own(runner: Runner, script: str) -> None:
    ran = runner.run(runner.script(script), PROFHARNESS_EXIT_STATUS="1")
    assert noted(ran) is None


def test_nothing_is_loaded_for_it_unless_asked(runner: Runner) -> None:
    ran = runner.run(
        runner.script("import atexit, sys\natexit.register(lambda: print('ctypes' in sys.modules))")
    )
    assert noted(ran) is None
    assert ran.out == "False\n"


def test_a_folder_that_is_gone_changes_nothing(runner: Runner, tmp_path: Path) -> None:
    ran = runner.run(
        runner.script(
            "import os, shutil, sys\nshutil.rmtree(os.environ['PROFHARNESS_HOOKS_DIR'])\n"
            "sys.exit(3)"
        ),
        PROFHARNESS_EXIT_STATUS="1",
    )
    assert (ran.status, ran.out, ran.err) == (3, "", "")

"""`python exec_hook.py SCRIPT` must be `python SCRIPT` with the hooks: same output, same errors,
same status.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

from .running import WRAPPERS, Ran, Runner

EXEC = WRAPPERS / "hooks" / "exec_hook.py"
STATE = """
import sys, os
print(__name__, __file__, __package__, __spec__ and __spec__.name, __doc__, type(__loader__).__name__)
print(sys.argv, sys.path[0], sorted(n for n in globals() if not n.startswith('__')))
print(sys.modules['__main__'].__dict__ is globals(), __builtins__ is sys.modules['builtins'], __annotations__)
"""


def pair(
    runner: Runner, *argv: str | Path, options: tuple[str, ...] = (), cwd: Path | None = None
) -> tuple[Ran, Ran]:
    """Through the exec hook without PYTHONPATH, and plain."""
    hooked = runner.run(*options, EXEC, *argv, PYTHONPATH="", cwd=cwd)
    return hooked, runner.run(*options, *argv, hooked=False, cwd=cwd)


def test_script_sees_what_a_plain_script_sees(runner: Runner) -> None:
    hooked, plain = pair(runner, runner.script(STATE, "deep/program.py"), "a", "-b")
    assert plain.status == 0
    assert (hooked.status, hooked.out, hooked.err) == (0, plain.out, plain.err)
    assert hooked.hello["hooks"] == ["exec"]


def test_no_future_feature_of_ours_reaches_the_script(runner: Runner) -> None:
    """`compile` passes on the `from __future__` lines of the file that calls it."""
    code = "def f(x: 1 + 1): pass\nprint(f.__annotations__)"
    for argv in ((runner.script(code),), ("-c", code)):
        hooked, plain = pair(runner, *argv)
        assert plain.out == "{'x': 2}\n"
        assert (hooked.status, hooked.out) == (0, plain.out)


def test_module_sees_what_a_plain_module_sees(runner: Runner) -> None:
    runner.script("", "package/__init__.py")
    runner.script(STATE, "package/__main__.py")
    runner.script(STATE, "package/inner.py")
    for name in ("package", "package.inner"):
        hooked, plain = pair(runner, "-m", name, "x", cwd=runner.folder)
        assert plain.status == 0, plain.err
        assert (hooked.status, hooked.out, hooked.err) == (0, plain.out, plain.err)


def test_code_folder_and_zip_run_as_ever(runner: Runner) -> None:
    code = "import sys; print(__name__, sys.argv, repr(sys.path[0]))"
    runner.script(STATE, "folder/__main__.py")
    with zipfile.ZipFile(runner.folder / "app.zip", "w") as archive:
        archive.writestr("__main__.py", "import sys; print(__name__, sys.argv, sys.path[0])")
    for argv in (
        ("-c", code, "x"),
        (runner.folder / "folder", "x"),
        (runner.folder / "app.zip", "x"),
    ):
        hooked, plain = pair(runner, *argv)
        assert plain.status == 0, plain.err
        assert (hooked.status, hooked.out, hooked.err) == (0, plain.out, plain.err)


@pytest.mark.parametrize(
    "text",
    [
        "import sys; sys.exit(5)",
        "import sys; sys.exit('reason')",
        "raise SystemExit",
        "def f():\n    1 / 0\nf()\n",
        "x = (\n",
        "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e\n",
        "import os, signal; os.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)\n",
        (
            "import atexit, sys; atexit.register(lambda: print(sys.modules['__main__'].late, "
            "late))\nlate = 1\n"
        ),
        "import sys; sys.excepthook = lambda *a: print('hooked', a[0].__name__); 1 / 0",
    ],
)
def test_endings_are_the_same(runner: Runner, text: str) -> None:
    hooked, plain = pair(runner, runner.script(text))
    assert (hooked.status, hooked.out, hooked.err) == (plain.status, plain.out, plain.err)
    assert len(hooked.hellos) == 1


def test_missing_file_and_module(runner: Runner) -> None:
    hooked, plain = pair(runner, runner.folder / "absent.py")
    assert (hooked.status, hooked.err) == (plain.status, plain.err)
    hooked, plain = pair(runner, "-m", "no_such_module_here")
    assert (hooked.status, hooked.err) == (plain.status, plain.err)


def test_isolated_interpreter_keeps_its_path(runner: Runner) -> None:
    program = runner.script("import sys; print(sys.path, sys.flags.isolated)")
    hooked, plain = pair(runner, program, options=("-I",))
    assert hooked.out == plain.out
    assert hooked.hello["hooks"] == ["exec"]


def test_spawned_children_find_the_script_as_main(runner: Runner) -> None:
    program = runner.script(
        "import multiprocessing as m\nclass C:\n    def __init__(self, x): self.x = x\n"
        "def f(c): return C(c.x + 1)\n"
        "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as pool: "
        "print(pool.map(f, [C(1)])[0].x)\n"
    )
    hooked, plain = pair(runner, program)
    assert (
        (hooked.status, hooked.out, hooked.err)
        == (plain.status, plain.out, plain.err)
        == (0, "2\n", "")
    )


def test_hooks_load_once_where_both_ways_are_open(runner: Runner) -> None:
    ran = runner.run(
        EXEC,
        runner.script(
            "import sys; print(sum('profharness_hooks.process.Finder' in repr(f) for f in "
            "sys.meta_path))"
        ),
    )
    assert ran.out == "1\n"
    assert ran.hello["hooks"] == ["sitecustomize"]
    assert sys.executable == ran.hello["executable"]

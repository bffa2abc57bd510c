"""How programs of the wrappers find their siblings, wherever the folder lies and however Python is
started.
"""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import old_pythons
from tests.wrappers.control import END, WORKLOADS, Control, kinds, point
from tests.wrappers.running import CLEAN, WRAPPERS, Runner

PROGRAMS = sorted(
    path
    for path in WORKLOADS.rglob("*.py")
    if "sys.path" in path.read_text() and path.name != "ranges.py" and path.parent != WORKLOADS
)
# what the hooks looked like to profharness_mark when its copies were made
COPY = (WRAPPERS / "profharness_mark.py").read_text()


def header(path: Path) -> str:
    """The statements by which a program finds its siblings."""
    (found,) = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.If) and "sys.path" in ast.unparse(node)
    ]
    return ast.unparse(found)


def test_every_program_begins_with_the_same_lines() -> None:
    started = [
        path for path in WORKLOADS.rglob("*.py") if '__name__ == "__main__"' in path.read_text()
    ]
    assert set(started) == set(PROGRAMS)
    assert len({header(path) for path in PROGRAMS}) == 1


def test_folders_are_packages_of_one_sentence_and_of_few_files() -> None:
    folders = {path.parent for path in WORKLOADS.rglob("*.py")} | {
        WRAPPERS / "hooks" / "profharness_hooks"
    }
    for folder in folders:
        assert len(list(folder.glob("*.py"))) <= 25
        tree = ast.parse((folder / "__init__.py").read_text())
        assert [type(node) for node in tree.body] == [ast.Expr]


def test_no_file_has_the_name_of_a_library() -> None:
    libraries = set(sys.stdlib_module_names) | {
        "torch",
        "numpy",
        "onnx",
        "onnxruntime",
        "tensorflow",
        "tritonclient",
        "pytriton",
        "transformers",
        "datasets",
    }
    assert not {path.stem for path in WRAPPERS.rglob("*.py")} & (libraries - {"__init__"})


def test_only_what_python_must_find_lies_on_the_path_of_a_workload() -> None:
    assert {path.name for path in (WRAPPERS / "hooks").iterdir() if path.name != "__pycache__"} == {
        "sitecustomize.py",
        "exec_hook.py",
        "profharness_hooks",
    }
    packages = {path.name for path in WRAPPERS.iterdir() if (path / "__init__.py").exists()}
    assert packages == {WORKLOADS.name}, (
        "a package of a common name would hide a folder of the user's that has no __init__.py"
    )


@pytest.mark.parametrize("flags", [(), ("-I",)], ids=["plain", "isolated"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_siblings_are_found_from_anywhere(
    tmp_path: Path, program: Path, flags: tuple[str, ...]
) -> None:
    """The lines at the top of each program, in a copy of the wrappers alone, from a folder with
    modules of the same names.
    """
    copy = tmp_path / "a copy" / "wrappers"
    shutil.copytree(WRAPPERS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    mine = copy / program.relative_to(WRAPPERS)
    mine.write_text(
        f"import os, sys\n{header(program)}\nimport json\nfrom {WORKLOADS.name}.shared import "
        f"protocol\nfrom {WORKLOADS.name}.loadgen import http2\n"
        "print(json.dumps([sys.path, protocol.__file__, http2.__file__]))"
    )
    (tmp_path / WORKLOADS.name).mkdir()
    done = subprocess.run(
        [sys.executable, *flags, str(mine)],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=True,
    )
    path, *files = json.loads(done.stdout)
    assert path[0] == str(copy)
    assert str(mine.parent) not in path
    assert all(Path(file).is_relative_to(copy) for file in files)


@pytest.mark.parametrize("flags", [(), ("-I",)], ids=["plain", "isolated"])
@pytest.mark.parametrize("linked", [False, True], ids=["copied", "linked"])
def test_a_worker_serves_from_a_copy_elsewhere(
    tmp_path: Path, flags: tuple[str, ...], linked: bool
) -> None:
    copy = tmp_path / "elsewhere"
    if linked:
        copy.symlink_to(WRAPPERS)
    else:
        shutil.copytree(WRAPPERS, copy)
    control = Control(tmp_path, {"backend": "onnxruntime", "model": "no such model"})
    control.ask(point("p"), END)
    done = subprocess.run(
        [sys.executable, *flags, str(copy / WORKLOADS.name / "batch" / "onnxruntime_worker.py")],
        cwd=tmp_path,
        env=control.env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert "no model named 'no such model'" in done.stderr
    assert done.returncode == 2
    assert kinds(control.records()) == ["error"]


@pytest.mark.parametrize("flags", [(), ("-I",)], ids=["plain", "isolated"])
def test_modules_load_under_the_oldest_python(tmp_path: Path, flags: tuple[str, ...]) -> None:
    """All that need no library, from a program that is started by its path."""
    copy = tmp_path / "wrappers"
    shutil.copytree(WRAPPERS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / WORKLOADS.name / "batch" / "all_of_them.py").write_text(
        f"import os, sys\n{header(PROGRAMS[0])}\nimport importlib, pkgutil\n"
        f"import {WORKLOADS.name} as package\n"
        "for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "    try:\n        importlib.import_module(found.name)\n"
        "    except ModuleNotFoundError as error:\n        print(error.name)\n"
    )
    done = subprocess.run(
        [
            old_pythons.needed("3.8"),
            *flags,
            str(copy / WORKLOADS.name / "batch" / "all_of_them.py"),
        ],
        cwd=tmp_path,
        env=CLEAN,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) <= {"numpy", "torch", "onnxruntime"}


def test_a_users_folder_of_workloads_is_not_hidden(runner: Runner) -> None:
    """Our folders stand at the end of the path of a profiled command; a package of ours there would
    win over a user's namespace.
    """
    for name in ("workloads", "shared", "batch"):
        runner.script("mine = True", f"{name}/things.py")
    program = runner.script(
        "import batch.things, shared.things, workloads.things; print(batch.things.mine, "
        "shared.things.mine, workloads.things.mine)"
    )
    assert runner.run(program).out == "True True True\n"


def test_a_users_copy_of_the_marks_reaches_the_hooks(runner: Runner) -> None:
    runner.script("", "tools/__init__.py")
    runner.script(COPY, "tools/marks_of_mine.py")
    program = runner.script(
        "from tools import marks_of_mine as own\nwith own.range('x'):\n    own.step(items=3)\n"
        "import sys\nprint(sys.modules['profharness_steps'] is "
        "sys.modules['profharness_hooks.step_log'], "
        "sys.modules['profharness_steps'].__spec__.name)"
    )
    ran = runner.run(program)
    assert ran.out == "True profharness_hooks.step_log\n"
    assert [(step["items"], step["source"]) for step in ran.steps()] == [(3, "mark")]

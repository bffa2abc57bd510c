"""The shape of the code: who may import whom, how large pieces are, what the harness process never
loads.
"""

from __future__ import annotations

import ast
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.cli import COMMANDS, root_help
from profharness.findings import CATALOGUE
from tests import started

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = sorted([*(ROOT / "profharness").rglob("*.py"), *(ROOT / "wrappers").rglob("*.py")])
NEVER_IN_THE_HARNESS = ("torch", "onnxruntime", "tensorflow", "tritonclient", "amdsmi")


def test_the_import_contract_holds() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports())",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_wrappers_never_import_the_harness_and_parse_as_python_3_8() -> None:
    for path in (ROOT / "wrappers").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
        for node in ast.walk(tree):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            assert not any(name.split(".")[0] == "profharness" for name in names), path


def test_the_harness_never_imports_a_framework() -> None:
    for path in (ROOT / "profharness").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom) and not node.level
                else []
            )
            assert not any(name.split(".")[0] in NEVER_IN_THE_HARNESS for name in names), (
                f"{path}: {names}"
            )


def test_help_is_fast_and_loads_nothing_heavy() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = (
        "import sys; from profharness.cli import run_cli; status = run_cli(['--help']);"
        "heavy = {'numpy', 'pandas', 'torch', 'rich', 'scipy', 'plotly'} & set(sys.modules); "
        "sys.exit(1 if heavy or status else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.3


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_help(name: str) -> None:
    done = started.run(name, "--help")
    assert done.returncode == 0, done.stderr
    assert f"profharness {name}" in done.stdout
    assert name in root_help()


def test_every_finding_says_what_to_do() -> None:
    for kind in CATALOGUE.values():
        assert kind.advice, kind.id
        assert kind.severity in ("info", "warning", "error")


def test_the_project_speaks_of_itself_alone() -> None:
    """No registry hosts, no absolute paths of a developer's machine in what is shipped."""
    for path in [
        *SOURCES,
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        ROOT / "mkdocs.yml",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "pyproject.toml",
        ROOT / "Makefile",
    ]:
        text = path.read_text(encoding="utf-8")
        for word in (
            "/wor" + "k/",
            "pypi" + ".org",
            "files.python" + "hosted",
            "registry.npm" + "js",
        ):
            assert word not in text, f"{path}: {word}"

"""What the harness imports is what its users have: a library of the extra `dev` is on every
machine that tests, and on no other.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator

from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
_MODULES = {"protobuf": "google", "nvidia-ml-py": "pynvml", "nvidia-pytriton": "pytriton"}
_COME_WITH = {"click": "typer", "markupsafe": "jinja2"}
"""Modules of libraries that another one, which is named, cannot do without."""
_OF_AN_EXTRA = {"profharness/cli/agents/server.py": ("mcp", "mcp_types", "anyio", "pydantic")}
"""Files that are imported only where an extra is installed, and what it brings."""


def modules_of(requirements: list[str]) -> set[str]:
    names = [re.split(r"[<>=\[; ]", one)[0].lower() for one in requirements]
    return {_MODULES.get(name, name.replace("-", "_")) for name in names}


def imports(node: ast.AST, *, at_once: bool = True) -> Iterator[tuple[str, bool]]:
    """Names of imported modules, and whether they are imported with the file; what only types need
    is left out.
    """
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((alias.name.split(".")[0], at_once) for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            yield (child.module or "").split(".")[0], at_once
        elif not (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)):
            inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Try)
            yield from imports(child, at_once=at_once and not inside)


def test_what_is_imported_is_a_dependency() -> None:
    base = modules_of(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    optional = set().union(*(modules_of(extras[name]) for name in extras if name != "dev"))
    known = {*sys.stdlib_module_names, "profharness", *_COME_WITH}
    missing = {
        f"{place}: {name}"
        for path in (ROOT / "profharness").rglob("*.py")
        for place in [path.relative_to(ROOT).as_posix()]
        for name, at_once in imports(ast.parse(path.read_text(encoding="utf-8")))
        if name not in known | base | {*_OF_AN_EXTRA.get(place, ())}
        and (at_once or name not in optional)
    }
    assert not missing, "\n".join(sorted(missing))


def test_an_import_inside_of_a_function_is_told_from_one_of_the_file() -> None:
    source = "import a\nif TYPE_CHECKING:\n    import t\ndef f():\n    from b.c import d\n"
    assert list(imports(ast.parse(source))) == [("a", True), ("b", False)]

"""Runs the tests that reach the shared recorded files where there are none: in a copy of this
checkout with no `../shared`, as a user has it who clones the repository.

Which tests those are is read from the code: they use the fixture `shared` or the names `SHARED` and
`shared_path` of tests/conftest.py, or a path of their own, themselves or through a fixture, constant
or function that does.
A test that opens a recorded file without asking whether it is there fails here; one that asks skips.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("shared", "shared_path", "SHARED")
OWN_PATHS = re.compile(
    r"""(?<!tmp_path)(?<!WORKLOADS)\)* / f?["']shared\b|shared/(fixtures|tools)|["']fixtures/"""
)
_THE_REST = "*"
"""Stands for what a module does besides its definitions: of that all its tests may depend."""


@dataclass(frozen=True)
class Definition:
    """A function, class or constant of a module, with the names that its code uses."""

    module: str
    name: str
    names: frozenset[str]
    attributes: frozenset[tuple[str, str]]
    """Of `module.name`."""
    fixtures: frozenset[str]
    own_path: bool
    """Whether it names their folder itself."""
    autouse: bool


@dataclass
class Module:
    definitions: list[Definition] = field(default_factory=list)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By its name here: the module that a thing comes from, and its name there."""


def parsed(module: str, text: str) -> Module:
    made = Module()
    tree, lines = ast.parse(text), text.splitlines()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                made.imports[one.asname or one.name] = (node.module, one.name)
    for statement in tree.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            code = "\n".join(lines[statement.lineno - 1 : statement.end_lineno])
            made.definitions += [
                _definition((module, name), statement, code)
                for name in _defined(statement) or [_THE_REST]
            ]
    return made


def _definition(place: tuple[str, str], statement: ast.stmt, code: str) -> Definition:
    module, name = place
    nodes = list(ast.walk(statement))
    decorators = "".join(map(ast.unparse, getattr(statement, "decorator_list", ())))
    takes_fixtures = isinstance(statement, ast.ClassDef) or "fixture" in decorators or _tests(name)
    fixtures = {node.arg for node in nodes if isinstance(node, ast.arg) and takes_fixtures}
    # of fixtures: usefixtures("shared"), request.getfixturevalue("shared")
    fixtures |= {
        argument.value
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("usefixtures", "getfixturevalue")
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }
    attributes = {
        (node.value.id, node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    if isinstance(statement, ast.FunctionDef):  # not what it calls its own variables
        names -= {
            node.id
            for node in nodes
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        names -= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return Definition(
        module,
        name,
        frozenset(names),
        frozenset(attributes),
        frozenset(fixtures),
        bool(OWN_PATHS.search(code)),
        "autouse" in decorators,
    )


def _tests(name: str) -> bool:
    return name.startswith(("test", "Test"))


def _defined(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        walked = (node for target in targets for node in ast.walk(target))
        return [node.id for node in walked if isinstance(node, ast.Name)]
    return []


def reaching(root: Path) -> list[str]:
    """The tests below `root/tests` that reach the recorded files, named as pytest takes them: whole
    files where all their tests may.
    """
    texts = {
        _module_of(path.relative_to(root)): path.read_text(encoding="utf-8")
        for path in sorted((root / "tests").rglob("*.py"))
    }
    modules: dict[str, Module] = {}
    found: set[tuple[str, str]] = {("tests.conftest", name) for name in NAMES}
    before = -1
    while before < len(found):
        before = len(found)
        words = {name.rpartition(".")[2] for name, _ in found} | {*NAMES}
        said = re.compile(rf"\b({'|'.join(sorted(words))})\b")
        for name, text in texts.items():
            if name not in modules and (said.search(text) or OWN_PATHS.search(text)):
                modules[name] = parsed(name, text)
                found |= {(name, one.name) for one in modules[name].definitions if one.own_path}
        users = _users(modules)
        edge = list(found)
        while edge:
            new = users[edge.pop()] - found
            found |= new
            edge += new
    return list(_named(modules, found))


def _module_of(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _users(modules: dict[str, Module]) -> dict[tuple[str, str], set[tuple[str, str]]]:
    """By module and name of a definition: those of the definitions whose code uses it."""
    users: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    for name, module in modules.items():
        own = {one.name for one in module.definitions}
        above = [".".join(name.split(".")[:depth]) for depth in range(1, name.count(".") + 1)]
        for one in module.definitions:
            for word in one.names | one.fixtures:
                place = (name, word) if word in own else module.imports.get(word, ("", word))
                users[place].add((name, one.name))
            for word in one.fixtures:
                for folder in above:
                    users[f"{folder}.conftest", word].add((name, one.name))
            for word, attribute in one.attributes:
                source, imported = module.imports.get(word, ("", ""))
                users[f"{source}.{imported}", attribute].add((name, one.name))
    return users


def _named(modules: dict[str, Module], found: set[tuple[str, str]]) -> Iterator[str]:
    for name, module in sorted(modules.items()):
        path = Path(*name.split(".")).with_suffix(".py")
        if not path.name.startswith("test_"):
            continue
        reach = [one for one in module.definitions if (name, one.name) in found]
        if any(one.autouse or one.name == _THE_REST for one in reach):
            yield str(path)
        else:
            for one in reach:
                if _tests(one.name):
                    yield f"{path}::{one.name}"


def copied(root: Path, folder: Path) -> Path:
    """A copy of a checkout, with what is not committed yet, and links to what was installed."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, target = root / name, folder / name
        if source.is_file() and not source.is_symlink():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target)
    for name in (".venv", ".tools"):
        if (root / name).exists():
            (folder / name).symlink_to((root / name).resolve())
    return folder


def main(options: list[str], root: Path = ROOT) -> int:
    """Runs them with these options of pytest; ends as pytest does."""
    with tempfile.TemporaryDirectory(prefix="profharness-alone-") as above:
        copy = copied(root, Path(above) / "checkout")
        tests = reaching(copy)
        print(f"{len(tests)} tests reach the recorded files; in {copy} there are none", flush=True)
        environment = {**os.environ, "PYTHONPATH": str(copy)}
        environment.pop("PROFHARNESS_SHARED", None)
        return subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=copy,
            env=environment,
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

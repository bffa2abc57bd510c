"""The shape of the code: limits that keep every file, function and folder small enough to read at
once.

They hold for what is shipped, `profharness/` and `wrappers/`. Where one fails, the message names
each place.
"""

from __future__ import annotations

import ast
import functools
import graphlib
import io
import re
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

Function = ast.FunctionDef | ast.AsyncFunctionDef

ENTRIES_AT_THE_TOP = 24
FILES_OF_A_FOLDER = 25
LINES_OF_A_FILE = 400
COLUMNS = 100
LINES_OF_A_FUNCTION = 60
PARAMETERS = 6
DOCUMENT = re.compile(r"\b(?:DESIGN|METRICS|UX|STYLE)\b(?=\.md\b| +\d|\W|$)")


@functools.cache
def texts() -> dict[Path, str]:
    """All source files by their path below the root."""
    return {
        path.relative_to(ROOT): path.read_text(encoding="utf-8")
        for folder in ("profharness", "wrappers")
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(text) for path, text in texts().items()}


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """All limits are held by one process, which then forgets the trees: a million objects would
    slow down whatever it tests next.
    """
    yield
    texts.cache_clear()
    trees.cache_clear()


def functions() -> Iterator[tuple[Path, Function]]:
    """Every function, methods and closures included."""
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield path, node


def public() -> Iterator[tuple[Path, Function]]:
    """Functions of modules and methods of their public classes; a protocol's methods are told by
    its class.
    """
    for path, tree in trees().items():
        for node in tree.body:
            inside: list[ast.stmt] = [node]
            if isinstance(node, ast.ClassDef):
                protocol = any(ast.unparse(base).startswith("Protocol") for base in node.bases)
                inside = [] if protocol or node.name.startswith("_") else node.body
            for one in inside:
                if isinstance(one, Function) and not one.name.startswith("_"):
                    yield path, one


def arguments(function: Function) -> list[ast.arg]:
    """Its named parameters, `self` and `cls` aside."""
    given = function.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [one for n, one in enumerate(named) if n or one.arg not in ("self", "cls")]


def place(path: Path, function: Function) -> str:
    return f"{path}:{function.lineno} {function.name}"


def crowded_top() -> list[str]:
    entries = [
        entry.name
        for entry in (ROOT / "profharness").iterdir()
        if not entry.name.startswith(("_", "."))
    ]
    return sorted(entries) if len(entries) > ENTRIES_AT_THE_TOP else []


def full_folders() -> list[str]:
    held = Counter(path.parent for path in texts())
    return [f"{folder}: {n} files" for folder, n in held.items() if n > FILES_OF_A_FOLDER]


def long_files() -> list[str]:
    counted = {path: text.count("\n") for path, text in texts().items()}
    return [f"{path}: {n} lines" for path, n in counted.items() if n > LINES_OF_A_FILE]


def wide_lines() -> list[str]:
    """A message that must stay searchable in one piece may say so beside itself."""
    return [
        f"{path}:{number}: {len(line)} columns"
        for path, text in texts().items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > COLUMNS and "noqa: E501" not in line
    ]


def long_functions() -> list[str]:
    sizes = [(place(*one), (one[1].end_lineno or 0) - one[1].lineno + 1) for one in functions()]
    return [f"{where}: {size} lines" for where, size in sizes if size > LINES_OF_A_FUNCTION]


def many_parameters() -> list[str]:
    counted = [(place(*one), len(arguments(one[1]))) for one in functions()]
    return [f"{where}: {n} parameters" for where, n in counted if n > PARAMETERS]


def without_types() -> list[str]:
    return [
        place(path, function)
        for path, function in public()
        if function.returns is None or any(one.annotation is None for one in arguments(function))
    ]


def without_docstring() -> list[str]:
    """A single statement may speak for itself."""
    return [
        place(path, function)
        for path, function in public()
        if len(function.body) > 1 and ast.get_docstring(function) is None
    ]


def citations_of_what_is_not_here() -> list[str]:
    """Comments and strings that name a document outside of the repository."""
    return [
        f"{path}:{token.start[0]}: {' '.join(token.string.split())[:60]}"
        for path, text in texts().items()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type in (tokenize.COMMENT, tokenize.STRING) and DOCUMENT.search(token.string)
    ]


def circle() -> list[str]:
    """The files of one circle of imports, if there is any; imports inside of functions count as
    well.
    """
    modules = {_module(path): path for path in texts()}
    arrows = {path: set(_imported(path, tree, modules)) for path, tree in trees().items()}
    try:
        graphlib.TopologicalSorter(arrows).prepare()
    except graphlib.CycleError as error:
        return [" -> ".join(map(str, error.args[1]))]
    return []


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(path: Path, tree: ast.Module, modules: dict[str, Path]) -> Iterator[Path]:
    """The files that this one needs as it runs: what only types need is left out.

    `from package import module` is an arrow to the module alone. The wrappers import their
    neighbours by bare names.
    """
    for node in _running(tree):
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = node.module or ""
            inner = [name for name in names if _found(f"{base}.{name}", path, modules)]
            names = [f"{base}.{name}" for name in inner] if len(inner) == len(names) else [
                base, *(f"{base}.{name}" for name in inner)
            ]  # fmt: skip
        for name in names:
            target = _found(name, path, modules)
            if target is not None and target != path:
                yield target


def _found(name: str, path: Path, modules: dict[str, Path]) -> Path | None:
    beside = ".".join((*path.parent.parts, name))
    return modules.get(name) or modules.get(beside)


def _running(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _running(node)


@pytest.mark.parametrize(
    "broken",
    [
        crowded_top,
        full_folders,
        long_files,
        wide_lines,
        long_functions,
        many_parameters,
        circle,
        without_types,
        without_docstring,
        citations_of_what_is_not_here,
    ],
    ids=lambda limit: limit.__name__.replace("_", " "),
)
def test_the_limit_holds(broken: Callable[[], list[str]]) -> None:
    places = broken()
    assert not places, f"{len(places)} places:\n" + "\n".join(places)

"""Renews the tables in the documents that come from the code: `make tables`, or with --check say
which are stale.

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; its rows are a function
here.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from profharness import families, layers
from profharness.layers import releases
from profharness.layers.contract import Description, Layer

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md", "docs/architecture.md", "docs/command-line.md", "docs/rocm.md")
BOTH = ("cli",)
MEASURING = (
    "options",
    "measure",
    "supervise",
    "workers",
    "scans",
    "layers",
    "launchers",
    "serving",
    "telemetry",
)
SHARED = ("stats", "rundir", "node", "secrets", "trace", "findings")
UNDERSTANDING = ("understand", "readers", "analysis", "writers", "report")
PLAIN_FOLDERS = {
    "profharness/scans/published": "Published studies as scan files, which run by name.",
    "profharness/report/page/templates": "The page's templates and its style.",
    "profharness/report/page/templates/painters": "What draws the marks that ECharts does not "
    "know: one function a file, found by its name.",
    "profharness/report/page/templates/script": "The page's own script: plots, tables, texts under "
    "the pointer.",
    "wrappers": "Single programs: the probe of a node, the leash of a child process, stamping and "
    "exit status beside a tool.",
    "wrappers/hooks": "The two files that stand on the workload's import path, and nothing else.",
    "wrappers/counters": "Which hardware counters each AMD architecture has, and which fit "
    "together.",
    "wrappers/slurm": "Job scripts to copy, one per tool.",
}
"""What lies in the folders that are no packages, and so have no docstring."""
_MARKED = re.compile(r"(<!-- table (?P<name>\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


SCOPES = {
    "hook": "inside the process, through a hook",
    "prefix": "around the process",
    "sidecar": "beside the process",
}


def _descriptions() -> list[Description]:
    """Our own layers in their order; what else is installed here does not count."""
    return [cast("type[Layer]", families.load(name)).about for name in layers.LAYERS]


def layer_rows() -> list[tuple[str, ...]]:
    """What each layer gives, and where it can be used."""
    return [
        ("`--profile`", "what it gives", "where"),
        *((f"`{about.name}`", about.gives, about.needs) for about in _descriptions()),
    ]


def scope_rows() -> list[tuple[str, ...]]:
    """Where each layer stands."""
    return [
        ("Layer", "Where it works"),
        *((f"`{about.name}`", SCOPES[about.scope]) for about in _descriptions()),
    ]


def release_rows() -> list[tuple[str, ...]]:
    """The tools' own versions in each ROCm release."""

    def own(version: releases.Version) -> str:
        return "-" if version == releases.BEFORE else releases.text(version)

    return [
        ("ROCm", "rocprofv3 (rocprofiler-sdk)", "rocprof-sys", "rocprof-compute"),
        *(
            (releases.text(one.rocm), own(one.sdk), own(one.systems), own(one.compute))
            for one in sorted(releases.RELEASES)
        ),
    ]


def sentence_of(folder: str) -> str:
    """What lies in the folder: the first sentence of its docstring."""
    if folder in PLAIN_FOLDERS:
        return PLAIN_FOLDERS[folder]
    tree = ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8"))
    paragraph = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def folders_of(top: str) -> list[str]:
    """The folder and all below it that hold files of ours, each before those in it."""
    below = sorted(path for path in (ROOT / top).rglob("*") if path.is_dir())
    names = [path.relative_to(ROOT).as_posix() for path in (ROOT / top, *below)]
    held = [name for name in names if "__" not in name]
    return [
        name for name in held if name in PLAIN_FOLDERS or (ROOT / name / "__init__.py").exists()
    ]


def folder_rows(tops: Sequence[str]) -> list[tuple[str, ...]]:
    """A row per folder below these, with its sentence."""
    return [
        ("folder", "what it holds"),
        *((f"`{name}/`", sentence_of(name)) for top in tops for name in folders_of(top)),
    ]


def _of_package(names: Sequence[str]) -> Callable[[], Sequence[Sequence[str]]]:
    return lambda: folder_rows([f"profharness/{name}" for name in names])


TABLES: dict[str, Callable[[], Sequence[Sequence[str]]]] = {
    "layers": layer_rows,
    "scopes": scope_rows,
    "releases": release_rows,
    "both": _of_package(BOTH),
    "measuring": _of_package(MEASURING),
    "shared": _of_package(SHARED),
    "understanding": _of_package(UNDERSTANDING),
    "wrappers": lambda: folder_rows(["wrappers"]),
}


def renewed(text: str) -> str:
    """The document with its tables as the code has them now. Raises KeyError for an unknown
    name.
    """

    def table(match: re.Match[str]) -> str:
        head, *rows = TABLES[match["name"]]()
        lines = [head, ["---"] * len(head), *rows]
        return match[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + match[3]

    return _MARKED.sub(table, text)


def main(arguments: Sequence[str]) -> int:
    """1 where a table was stale and is only to be checked, else 0."""
    parser = argparse.ArgumentParser(description="Renew the tables that come from the code.")
    parser.add_argument("--check", action="store_true", help="only say which documents are stale")
    check = parser.parse_args(arguments).check
    stale = False
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            stale = True
            print(f"{name}: {'stale, renew it with: make tables' if check else 'renewed'}")
            if not check:
                path.write_text(new, encoding="utf-8")
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

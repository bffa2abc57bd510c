"""Renews the tables in the documents that come from the code: `make tables`, or with --check say
which are stale.

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; its rows are a function
here.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

from profharness import families, layers
from profharness.layers.contract import Layer

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = ("README.md",)
_MARKED = re.compile(r"(<!-- table (?P<name>\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def layer_rows() -> list[tuple[str, ...]]:
    """Our own layers in their order; what else is installed here does not count."""
    found = [cast("type[Layer]", families.load(name)).about for name in layers.LAYERS]
    return [
        ("`--profile`", "what it gives", "where"),
        *((f"`{about.name}`", about.gives, about.needs) for about in found),
    ]


TABLES: dict[str, Callable[[], Sequence[Sequence[str]]]] = {"layers": layer_rows}


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

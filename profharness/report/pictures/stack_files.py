"""A tree of time as files for other viewers: speedscope, and folded stacks for flamegraph.pl and
its like.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.pictures.flame import Tree
from profharness.rundir.shown.screen import encoded, visible

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def folded_text(tree: Tree) -> str:
    """One line per stack, the outermost frame first, and its ns: `main;aten::mm;kernel 1234`. A
    semicolon in a name becomes a comma, since it would end the frame.
    """
    names = [_on_one_line(name).replace(";", ",") for name in tree.names]
    lines = [f"{';'.join(names[number] for number in path)} {ns}\n" for path, ns in _stacks(tree)]
    return "".join(sorted(lines))


def speedscope_json(tree: Tree, title: str) -> str:
    """The tree in speedscope's format as one sampled profile, whose weights are ns
    (https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources).
    """
    texts: dict[str, int] = {}
    place = [texts.setdefault(visible(name), len(texts)) for name in tree.names]
    stacks = list(_stacks(tree))
    profile = {
        "type": "sampled",
        "name": f"{'device' if tree.of_device else 'host'} time",
        "unit": "nanoseconds",
        "startValue": 0,
        "endValue": tree.total_ns,
        "samples": [[place[number] for number in path] for path, _ in stacks],
        "weights": [ns for _, ns in stacks],
    }
    document = {
        "$schema": SCHEMA,
        "name": title,
        "exporter": "profharness",
        "activeProfileIndex": 0,
        "shared": {"frames": [{"name": name} for name in texts]},
        "profiles": [profile],
    }
    return encoded(document).decode() + "\n"


def _stacks(tree: Tree) -> Iterator[tuple[list[int], int]]:
    """Each frame that has time of its own, with the frames around it."""
    for number, ns in enumerate(tree.own_ns):
        if ns:
            yield tree.path(number), ns


def _on_one_line(name: str) -> str:
    return visible(" ".join(name.split()))

"""Names of spans that give a trace its structure, to kind, point and items.

Our own hooks and workers write `profharness.<kind>:...`; torch's profiler writes `ProfilerStep#<n>`
itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.readers.bytes.limits import whole
from profharness.trace.columns.table import NULL
from profharness.trace.model import MarkKind

_PREFIX = "profharness."
_TORCH_STEP = "ProfilerStep#"


@dataclass(frozen=True)
class Mark:
    """What a span's name says. `label` is what to show: the user's own text for a range, else the
    name as recorded.
    """

    kind: MarkKind
    label: str
    point: str = ""
    items: int = NULL


def _items(text: str) -> int:
    number = whole(text)
    return NULL if number is None or number < 0 else number


def parse_mark(name: str) -> Mark:
    """The mark that `name` stands for; a name without our prefix, or with one that is not
    understood, is a range.
    """
    if name.startswith(_TORCH_STEP):
        return Mark("step", name)
    if not name.startswith(_PREFIX):
        return Mark("range", name)
    kind, _, rest = name.removeprefix(_PREFIX).partition(":")
    items = rest.partition(":")[2]
    mark_of_kind = {
        "point": Mark("point", name, point=rest),
        "trial": Mark("trial", name, point=rest.rpartition(":")[0]),
        "warmup": Mark("warmup", name, point=rest.rpartition(":")[0]),
        "step": Mark("step", name, items=_items(items)),
        "marker": Mark("marker", name),
        "range": Mark("range", rest),
    }
    return mark_of_kind.get(kind, Mark("range", name))

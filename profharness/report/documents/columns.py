"""The columns of a table side by side on a page: as wide as their texts, and where they are too
many, long names cut, then the further columns in a block of their own below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile

from profharness.report.table import Table
from profharness.report.text.folding import cut_middle

Measure = Callable[[str], float]
"""The width of a text in points."""
GAP = 10.0
"""Points between two columns."""
_LEAST = 100.0  # points of a column whose long names are cut
_NAME = 24  # letters of a word, beyond which it is a name that can be cut


@dataclass(frozen=True)
class Column:
    """Texts of one column, its title first, its width in points, and whether it stands right."""

    texts: tuple[str, ...]
    width: float
    right: bool

    @property
    def can_be_cut(self) -> bool:
        """Whether it holds long names; sentences would lose their sense."""
        return any(len(word) > _NAME for text in self.texts for word in text.split())


Block = tuple[Column, ...]


def blocks(table: Table, rows: int, room: float, measure: Measure) -> tuple[str, list[Block]]:
    """The table's title, and the blocks of its first `rows` rows that stand below each other, none
    wider than `room` points. A first column that says the same in every row joins the title, and
    later blocks begin with the columns that name their rows.
    """
    title, places = table.title, list(range(len(table.columns)))
    shown = table.rows[:rows]
    if len(shown) > 1 and len({row[0].text for row in table.rows}) == 1 and shown[0][0].text:
        title, places = f"{title}: {shown[0][0].text}", places[1:]
    made = [
        _column(
            (table.columns[at].title, *(row[at].text for row in shown)),
            right=table.columns[at].align == "right",
            measure=measure,
        )
        for at in places
    ]
    made = [column for column in made if any(column.texts[1:])]
    return title, _side_by_side(_narrowed(made, room, measure), room)


def _column(texts: Sequence[str], *, right: bool, measure: Measure) -> Column:
    return Column(tuple(texts), max(map(measure, texts)), right)


def _wide(columns: Sequence[Column]) -> float:
    return sum(column.width for column in columns) + GAP * max(len(columns) - 1, 0)


def _narrowed(columns: Sequence[Column], room: float, measure: Measure) -> list[Column]:
    """The columns with the names of the widest ones cut until all fit, or none can give more."""
    made = list(columns)
    for at in sorted(range(len(made)), key=lambda place: -made[place].width):
        over = _wide(made) - room
        if over > 0 and made[at].can_be_cut:
            least = max(_LEAST, made[at].width - over)
            texts = [_cut(text, least, measure) for text in made[at].texts]
            made[at] = _column(texts, right=made[at].right, measure=measure)
    return made


def _cut(text: str, width: float, measure: Measure) -> str:
    letters = len(text)
    while letters > 4 and measure(cut_middle(text, letters)) > width:
        letters -= 1
    return cut_middle(text, letters)


def _side_by_side(columns: Sequence[Column], room: float) -> list[Block]:
    named = list(takewhile(lambda column: not column.right, columns))
    named = named if _wide(named) < room / 2 else []
    found: list[list[Column]] = [[]]
    for column in columns:
        if found[-1] and _wide([*found[-1], column]) > room:
            found.append(named[:])
        found[-1].append(column)
    return [tuple(block) for block in found if block]

"""Rows of long tables that the page's script puts in when they are asked for: compressed, so that
thousands of names fit into a page that stays small.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from profharness.report.page.packed import packed

if TYPE_CHECKING:
    from markupsafe import Markup

ROOM = 280_000
"""Characters of all such rows together, compressed."""
_ROW_END = "</tr>"


class LaterRows:
    """The later rows of each table of one page, until the room for them is used up."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._packed: dict[str, str] = {}

    def keep(self, rows: str) -> tuple[str, int]:
        """Keep rows of a table, written one after the other as HTML; the name that they are kept
        by, and how many of them found room.
        """
        kept = [f"{row.strip()}{_ROW_END}" for row in rows.split(_ROW_END)[:-1]]
        small = packed("".join(kept))
        while kept and len(small) > self._room:
            kept = kept[: min(int(len(kept) * self._room / len(small) * 0.9), len(kept) - 1)]
            small = packed("".join(kept))
        name = f"t{len(self._packed)}"
        self._packed[name] = small if kept else ""
        self._room -= len(self._packed[name])
        return name, len(kept)

    def data(self) -> Markup:
        """All of it as JSON by name: letters and digits, nothing that could end an element."""
        from markupsafe import Markup

        return Markup(json.dumps(self._packed, separators=(",", ":")))  # noqa: S704  base64

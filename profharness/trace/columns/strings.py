"""The pool of texts behind the columns of a trace."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


class Strings:
    """An append-only pool: text <-> int32 code. Shared by all string columns of a trace."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        for text in texts:
            self.code(text)

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, text_code: int) -> str:
        return self.texts[text_code] if text_code >= 0 else ""

    def code(self, text: str) -> int:
        """The code of `text`, added when it is new."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

    def find(self, text: str) -> int:
        """The code of `text`, or `NULL` (-1) when no record uses it."""
        return self._codes.get(text, -1)

    def codes(self, texts: Iterable[str]) -> npt.NDArray[np.int32]:
        """Codes of many texts, adding new ones."""
        return np.fromiter((self.code(t) for t in texts), np.int32)

    def decode(self, codes: npt.ArrayLike) -> list[str]:
        """Texts of many codes; NULL gives the empty text."""
        return [self[int(c)] for c in np.asarray(codes)]

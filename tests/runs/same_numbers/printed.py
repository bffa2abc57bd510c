"""Numbers as people read them, read back: a value in the unit of a figure, and half of the last
digit that was printed.
"""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from dataclasses import dataclass
from html.parser import HTMLParser

_NUMBER = re.compile(
    r"^[^\d-]{0,2}(-?\d[\d\u2009\u202f\u00a0]*(?:[ ]\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)\s*(.*)$"
)
_REST = re.compile(r"^(?:±\s*(\d[\d\u2009\u202f ]*(?:\.\d+)?)\s*)?(%|[^\s(±,;]*(?:\s+\w[^\s(]*)?)")
_NS = {"ns": 1.0, "µs": 1e3, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
_TO_NS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_BYTES = {"B": 1.0, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "PiB": 2**50}
_SI = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}


@dataclass(frozen=True)
class Printed:
    """A value, and by how much what was rounded to it may differ; or a share that is above it and
    below the whole (`> 99.9 %`).
    """

    value: float
    within: float
    above: bool = False

    def is_of(self, exact: float) -> bool:
        """Whether this is `exact`, as it was rounded."""
        if self.above:
            return self.value < exact < 1
        return abs(self.value - exact) <= self.within * 1.001 + 1e-12 * abs(exact)


def read_back(text: str, unit: str) -> Printed | None:
    """What `text` says in `unit`; None for a text that begins with no number. Raises ValueError for
    a unit that does not go with it.
    """
    found = _NUMBER.match(text.strip())
    if found is None:
        return None
    digits, rest = re.sub(r"[\s\u2009\u202f\u00a0]", "", found[1]), found[2].strip()
    mantissa, _, exponent = digits.partition("e")
    decimals = len(mantissa.partition(".")[2])
    last = 10.0 ** (int(exponent or 0) - decimals)
    named = _REST.match(rest)
    scale = _scale((named[2] if named else "").strip(), unit)
    if named is not None and named[1] and not decimals:
        last = _rounded(digits, re.sub(r"[\s\u2009\u202f]", "", named[1]))
    return Printed(float(digits) * scale, 0.5 * last * scale, text.strip().startswith(">"))


def _rounded(value: str, uncertainty: str) -> float:
    """The last digit that counts of whole numbers whose ends were rounded to zeros: at most the
    second one of the uncertainty.
    """
    zeros = min(len(one) - len(one.rstrip("0")) for one in (value, uncertainty))
    return 10.0 ** max(min(zeros, len(uncertainty) - 2), 0)


def _scale(printed: str, unit: str) -> float:
    word = printed.split(maxsplit=1)[0] if printed else ""
    if word == "%" and unit != "%":
        return 0.01
    if unit in _TO_NS and word in _NS:
        return _NS[word] / _TO_NS[unit]
    if unit == "B" and word in _BYTES:
        return _BYTES[word]
    for whole in (printed, word):
        for base in (unit, unit.removesuffix("s"), unit.removesuffix("es")):
            if base and whole.endswith(base) and whole.removesuffix(base).strip() in _SI:
                return _SI[whole.removesuffix(base).strip()]
    if word in _SI and (not word or printed != word):
        return _SI[word]  # `24.4 k jets/s`, and shares without a unit
    raise ValueError(f"{printed!r} is no {unit!r}")


class Tables(HTMLParser):
    """The tables of a page: by each caption, its rows as texts of cells, the head first."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tables: list[tuple[str, list[list[str]]]] = []
        self._into: str = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.tables.append(("", []))
        elif tag == "tr" and self.tables:
            self.tables[-1][1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1][1]:
            self.tables[-1][1][-1].append("")
            self._into = "cell"
        elif tag == "caption":
            self._into = "caption"

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th", "caption"):
            self._into = ""

    def handle_data(self, data: str) -> None:
        if self._into == "cell":
            self.tables[-1][1][-1][-1] += data.strip()
        elif self._into == "caption":
            caption, rows = self.tables[-1]
            self.tables[-1] = (caption + data.strip(), rows)


LATER = re.compile(r'<script type="application/json" id="later-rows">(.*?)</script>', re.DOTALL)


def with_later_rows(page: str) -> str:
    """The page with the rows in their tables that its script puts there when they are asked for."""
    found = LATER.search(page)
    for name, packed in (json.loads(found[1]) if found else {}).items():
        rows = zlib.decompress(b64decode(packed)).decode() if packed else ""
        end = page.rindex("</tbody>", 0, page.index(f'data-later="{name}"'))
        page = page[:end] + rows + page[end:]
    return page


def text_of(page: str) -> str:
    """The words of a page with single blanks between them, without its scripts and styles."""
    import html

    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", bare)).split())

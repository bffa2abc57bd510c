r"""What reaches a screen or a pipe: names from foreign files are shown with their control, escape
and direction characters escaped, and only colours of our own stay.

Two doors lead out. `guarded` stands before `sys.stdout` and `sys.stderr` for as long as a command
runs, and escapes whatever is printed. What our own renderer colours comes from a `console`, which
escapes each piece of text before it is styled, and passes the first door as `Painted`.

One form serves text and JSON alike: `\u001b`, above U+FFFF as a surrogate pair, so that a JSON
document is as valid behind the door as before it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

LONGEST = 4_000
"""Characters of one foreign text within a sentence; what is longer is cut in its middle."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ANY_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HIDDEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    r"\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    r"\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls but for tab and line end, format characters (direction, zero width, tags), separators of
lines and paragraphs, halves of surrogates (Unicode's categories Cc, Cf, Zl, Zp, Cs), and letters
without a shape (its Default_Ignorable_Code_Point).
"""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_FORMULA = re.compile(r"'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"-|[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+](inf|nan)", re.ASCII)


def visible(text: str) -> str:
    r"""`text` with each character that has no shape, or acts on the terminal, as `\u` and four
    digits; line ends and tabs stay.
    """
    hidden = _CONTROL if text.isascii() else _HIDDEN
    return hidden.sub(_escaped, text) if hidden.search(text) else text


def without_controls(text: str) -> str:
    """`text` for a viewer that draws what else has no shape by itself: only control characters are
    escaped, but for tab and line end.
    """
    return text if text.isprintable() else _ANY_CONTROL.sub(_escaped, text)


def one_line(text: str, longest: int = LONGEST) -> str:
    """`visible`, with line ends and tabs escaped too, cut in its middle where it is longer than
    `longest` characters: fit to stand within a sentence or a cell.
    """
    if len(text) > longest:
        kept = longest // 2
        text = f"{text[:kept]} … {len(text) - 2 * kept} characters … {text[-kept:]}"
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def lines_text(lines: Iterable[str]) -> str:
    """The lines below each other, each of them one, whatever names it holds."""
    return "".join(f"{one_line(line, len(line))}\n" for line in lines)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


class Painted(str):
    """Finished text whose foreign parts are escaped already: its escape sequences are our own."""

    __slots__ = ()


class Screen:
    """A text stream before another one: what it gets is written `visible`, what is `Painted` as is.

    Characters that the stream's encoding lacks are escaped as well. All else is the stream's own.
    """

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    encoding = "utf-8"  # any character may be written, so that nobody has to go round this door

    def write(self, text: str) -> int:
        """Write the text; its length before anything was escaped."""
        out = text if isinstance(text, Painted) else visible(text)
        encoding = getattr(self.beneath, "encoding", None) or "utf-8"
        if not out.isascii() and encoding.lower().replace("-", "") != "utf8":
            out = _encodable(out, encoding)
        self.beneath.write(str(out))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> object:
        return getattr(self.beneath, name)


def _encodable(text: str, encoding: str) -> str:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(
            one if one.encode(encoding, "ignore") else re.sub("(?s).", _escaped, one)
            for one in text
        )
    return text


def screened(stream: TextIO) -> TextIO:
    """The stream behind a door; the same one where it has one already."""
    return stream if isinstance(stream, Screen) else cast("TextIO", Screen(stream))


def as_cell(text: str) -> str:
    """A text as a cell of a table that a spreadsheet opens: an apostrophe stands before what it
    would take for a formula (OWASP, "CSV Injection"); numbers and a lone minus stay.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(cell: str) -> str:
    """What `as_cell` was given."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def mention(sentence: str) -> None:
    """Write one sentence to stderr, where all but data goes: one line, whatever names it holds."""
    sys.stderr.write(f"{one_line(sentence)}\n")
    sys.stderr.flush()


def encoded(value: object) -> bytes:
    """A value as JSON, which holds what has no shape escaped; a name of undecodable bytes, which is
    no Unicode, is escaped twice.
    """
    import msgspec

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(_without_surrogates(msgspec.to_builtins(value)))
    return data if data.isascii() else visible(data.decode()).encode()


def _without_surrogates(value: object) -> object:
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_without_surrogates(one) for one in value]
    return _SURROGATE.sub(_escaped, value) if isinstance(value, str) else value


@contextmanager
def guarded() -> Iterator[None]:
    """Standard output and standard error behind doors; as they were at the end."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = screened(sys.stdout), screened(sys.stderr)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def guard_live() -> None:
    """Stand before the doors that rich's live display has just put up, too: these would turn a
    name's escape sequences into styles. The display takes both away when it ends.
    """
    from rich.file_proxy import FileProxy

    if isinstance(sys.stdout, FileProxy):
        sys.stdout = screened(cast("TextIO", sys.stdout))
    if isinstance(sys.stderr, FileProxy):
        sys.stderr = screened(cast("TextIO", sys.stderr))


def console(stream: TextIO, width: int | None = None, *, color: bool | None = None) -> Console:
    """Rich's console with our rules: foreign text is escaped before it is styled, and markup in it
    is plain text.

    `color` None leaves it to the stream whether it is a terminal.
    """
    beneath = stream.beneath if isinstance(stream, Screen) else stream
    if color is None:
        return _escaping()(file=beneath, width=width, highlight=False, markup=False, emoji=False)
    return _escaping()(
        file=beneath,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


@cache
def _escaping() -> type[Console]:
    from rich.console import Console
    from rich.segment import Segment

    class Escaping(Console):
        """Escapes the text of every segment; those that move the cursor are rich's own."""

        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

    return Escaping

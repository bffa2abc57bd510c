"""Where a line of the page may end: not between a number and its unit, nor inside of an option."""

from __future__ import annotations

import re

NO_BREAK = "\u00a0"

_UNIT = (
    r"(?:%|°C|[nµum]?s|min|h"
    r"|[kKMGTP]?i?B(?:/s)?|[kMGTP]?FLOP(?:/s|/B)?|[mkM]?[WJ]|[kMG]?Hz"
    r"|cores?|times|[kMG](?= [a-z])|[a-z]+/s)(?![\w/])"
)
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?={_UNIT})")
_AFTER_PREFIX = re.compile(rf"(?<=\d{NO_BREAK}[kMG]) (?=[a-z]+/s)")
_UNCERTAIN = re.compile(r"(?<=\d) ± (?=\d)|(?<=±) (?=\d)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def unbroken(text: str) -> str:
    """The text with no-break spaces inside of `82.9 %`, `1.2 ± 0.1 ms` and `234 k items/s`; `1.2 ms
    ± 40 µs` may break before its ±.
    """
    held = _BEFORE_UNIT.sub(NO_BREAK, text)
    held = _AFTER_PREFIX.sub(NO_BREAK, held)
    return _UNCERTAIN.sub(lambda found: found.group().replace(" ", NO_BREAK), held)


def whole_options(escaped: str) -> str:
    """HTML in which no line ends inside of `--an-option`: browsers break after its dashes."""
    return _OPTION.sub(r'<span class="option">\g<0></span>', escaped)

"""A trace without the secret values that its texts hold: names of marks and calls, and what tools
tell of a process. Pure.

Tools write what they are given: a range named after a command line, an environment among the
details of a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from profharness.secrets.names import MARKER, is_secret
from profharness.secrets.patterns import clean_text, may_hold_secrets, which_may_hold_secrets
from profharness.trace.columns.table import Table
from profharness.trace.model import Source, Strings, Trace

_LINE = "\n"


def without_secrets(trace: Trace) -> Trace:
    """The trace with the values of secret-looking variables replaced in its texts; the same object
    where there are none.
    """
    sources = tuple(_discreet(source) for source in trace.sources)
    strings = _cleaned(trace.strings)
    if strings is None:
        return trace if sources == trace.sources else replace(trace, sources=sources)
    pool, codes = strings
    # each name has a table of its own kind, which a dict cannot say
    tables: dict[str, Any] = {name: _recoded(table, codes) for name, table in trace.tables()}
    return replace(trace, sources=sources, strings=pool, **tables)


def _discreet(source: Source) -> Source:
    source = _with_clean_names(source)
    if not source.details:
        return source
    cleaned = clean_texts([value for _, value in source.details])
    details = tuple(
        (name, MARKER if is_secret(name, value) else clean)
        for (name, value), clean in zip(source.details, cleaned, strict=True)
    )
    return source if details == source.details else replace(source, details=details)


def _with_clean_names(source: Source) -> Source:
    """The source, the names of whose processes and threads hold no secret."""
    texts = [entry.name for entry in source.names]
    cleaned = clean_texts(texts)
    if cleaned is texts:
        return source
    names = (entry._replace(name=text) for entry, text in zip(source.names, cleaned, strict=True))
    return replace(source, names=tuple(names))


def _cleaned(strings: Strings) -> tuple[Strings, Sequence[int]] | None:
    """A pool without secrets and the new code of each text; None where all texts may stay."""
    cleaned = clean_texts(strings.texts)
    if cleaned is strings.texts:
        return None
    pool = Strings()
    return pool, [pool.code(text) for text in cleaned]


def clean_texts(texts: Sequence[str]) -> Sequence[str]:
    """The texts without secrets; the same object where none holds one. All are searched at once,
    and then only those that hold a word of a secret one by one: nearly every trace is done with the
    first search, and a log has a hundred thousand commands.
    """
    if not _any_held(_LINE.join(texts)):
        return texts
    cleaned = list(texts)
    for at in which_may_hold_secrets([_raw(text) for text in texts]):
        cleaned[at] = clean_text(texts[at])
    return cleaned


def _any_held(whole: str) -> bool:
    if not may_hold_secrets(_raw(whole)):
        return False
    found: Counter[str] = Counter()
    clean_text(whole, found)
    return bool(found)


def _raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _recoded(table: Table, codes: Sequence[int]) -> Table:
    if not len(table):
        return table
    from profharness.trace.merge import looked_up

    places = np.array(codes, np.int32)
    return table.with_columns(
        **{
            column.name: looked_up(getattr(table, column.name), places)
            for column in fields(table)
            if column.metadata["unit"] == "string"
        }
    )

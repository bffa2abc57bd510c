"""A connection to a database that somebody else made: it may be read, and nothing else, within
bounds of work, time and memory that follow from its size.

A schema is a program: its views can loop, join millions of rows, or make gigabytes of a few bytes.
SQLite's advice for such files is https://www.sqlite.org/security.html, section 1.2.
"""

from __future__ import annotations

import re
import resource
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, repeat, tee
from operator import attrgetter, length_hint
from typing import Any

# what reading a damaged file raises; names that are not UTF-8 are not handled by the module itself
DAMAGED = (sqlite3.Error, UnicodeDecodeError, OverflowError)

STEP = 1000  # instructions of SQLite's machine between two looks at the bounds
_OF_ONE, _MOST_PAID = 100, 250  # tables and views: of one process, and beyond
_HEAP_BYTES = 192 << 20
_LIMITS = (
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, 1 << 20),
    (sqlite3.SQLITE_LIMIT_COLUMN, 2000),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 200),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 500),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, 32),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 100),
    (sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)


@dataclass(frozen=True)
class Allowance:
    """What reading may cost: a start, and a share that grows with the file."""

    instructions: int = 10_000_000
    instructions_per_table: int = 100_000
    instructions_per_byte: int = 4  # a trace of rocpd needs 0.3 for all of its tables and views
    seconds: float = 3.0
    seconds_per_table: float = 0.02
    """Of tables and views beyond those of one process, as `instructions_per_table`: a merged
    database of eight costs 3 s and 6 million instructions, since each of its views unites the
    tables of all."""

    seconds_per_mib: float = 0.3
    memory_bytes: int = 200 << 20
    memory_per_byte: int = 12
    value_bytes: int = 1 << 20
    consistent: bool = True
    """Whether to ask SQLite first if the pages fit together: 3 s per GB, a tenth of what reading
    takes."""


READING = Allowance()
SEARCHING = Allowance(
    seconds=60.0,
    seconds_per_mib=60.0,
    memory_bytes=400 << 20,
    value_bytes=64 << 20,
    consistent=False,
)
"""For whoever looks through all values with slow code of its own between the rows."""

RECOVERING = Allowance(instructions_per_byte=40)


class Bounds:
    """What a connection may still cost, and whether it asked for more."""

    def __init__(self, size: int, tables: int, allowance: Allowance) -> None:
        more = min(max(tables - _OF_ONE, 0), _MOST_PAID)
        instructions = (
            allowance.instructions
            + allowance.instructions_per_byte * size
            + allowance.instructions_per_table * more
        )
        self._steps = repeat(0, instructions // STEP)
        self._seconds = (
            time.thread_time()
            + allowance.seconds
            + allowance.seconds_per_mib * size / (1 << 20)
            + allowance.seconds_per_table * more
        )
        self._kib = float(
            _peak_kib() + (allowance.memory_bytes + allowance.memory_per_byte * size) // 1024
        )
        self._looked: dict[bool, bool] = {}

    def look(self) -> Callable[[], bool]:
        """What SQLite calls every `STEP` instructions; true ends the statement.

        It is made of functions in C alone, so that a signal is not delivered inside of it, where
        SQLite would swallow the exception that the signal raises.
        """
        usage = map(resource.getrusage, repeat(resource.RUSAGE_SELF))
        over = map(
            max,
            chain(self._steps, repeat(1)),
            map(self._seconds.__lt__, iter(time.thread_time, -1.0)),
            map(self._kib.__lt__, map(float, map(attrgetter("ru_maxrss"), usage))),
        )
        one, same = tee(map(bool, over))
        return map(self._looked.setdefault, one, same).__next__

    @property
    def excess(self) -> str:
        """What was asked for beyond the bounds, in words; empty where nothing was."""
        if True not in self._looked:
            return ""
        if not length_hint(self._steps):
            return "work"
        return "memory" if _peak_kib() > self._kib else "time"


def limit(
    connection: sqlite3.Connection, size: int, allowance: Allowance, tables: int = 0
) -> Bounds:
    """Set the bounds of a connection to a file of `size` bytes with so many tables and views; it
    may still write.
    """
    for name, value in _LIMITS:
        connection.setlimit(name, value)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, allowance.value_bytes)
    connection.execute("PRAGMA cell_size_check = ON")
    connection.execute(f"PRAGMA hard_heap_limit = {_HEAP_BYTES}")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE)
    bounds = Bounds(size, tables, allowance)
    connection.set_progress_handler(bounds.look(), STEP)
    return bounds


class Texts(dict[bytes, str]):
    """Texts of a database, decoded: the same bytes are decoded once, since names repeat. A byte
    that is not UTF-8 becomes the replacement character.
    """

    _MOST_BYTES = 4 << 20

    def __init__(self) -> None:
        super().__init__()
        self._held = 0

    def __missing__(self, raw: bytes) -> str:
        self._held += len(raw)
        if self._held > self._MOST_BYTES:
            self.clear()
            self._held = len(raw)
        text = self[raw] = raw.decode("utf-8", "replace")
        return text


_AGGREGATES = """
    avg count group_concat max min sum total row_number rank dense_rank percent_rank cume_dist
    ntile lag lead first_value last_value nth_value
    json_group_array json_group_object
"""
# each costs no more than its values' length
_OF_VALUES = """
    abs round floor ceil ceiling sign mod sqrt pow power ln log log10 log2 exp coalesce ifnull
    nullif iif likely unlikely typeof length substr substring lower upper trim ltrim rtrim hex
    quote char unicode printf format concat date time datetime julianday strftime unixepoch
    json json_extract json_valid json_type json_array_length json_object json_array json_quote
    -> ->>
"""
_FUNCTIONS = frozenset(f"{_AGGREGATES} {_OF_VALUES}".split())
_GENERATED = re.compile(r"\bAS\b", re.IGNORECASE)
# functions whose time is not bounded by their values' length, as they are called (a comment may
# stand before the bracket), and two that are operators
_COSTLY = re.compile(
    r"\b(replace|instr|zeroblob|randomblob)\b[\"'`\]]?\s*(?:\(|/\*|--)|\b(like|glob)\b",
    re.IGNORECASE,
)
_NEEDLESS = "which no trace needs"
_PRAGMAS = frozenset(
    {"table_info", "table_xinfo", "table_list", "page_count", "encoding", "quick_check"}
)
_MOST_VIEWS_IN_A_VIEW = 4096
_LONGEST_ANSWER = 160


class Permissions:
    """What statements may do: select from tables and views, with functions that cannot harm."""

    def __init__(self) -> None:
        self.denied = ""
        self._unreadable: frozenset[str] = frozenset()

    def restrict(self, connection: sqlite3.Connection) -> None:
        """Allow reading only. Raises one of `DAMAGED` where the schema cannot be read or is made to
        cost more than any trace's.
        """
        connection.execute("PRAGMA query_only = ON")
        connection.execute("PRAGMA ignore_check_constraints = ON")  # of the file's own making
        entries = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        if not any("json" in str(text).lower() for _, _, text in entries):
            # before SQLite 3.41 JSON's functions count as unsafe, and real views of rocpd call
            # them: there the permissions below have to do
            connection.execute("PRAGMA trusted_schema = OFF")
        self._unreadable = frozenset(
            name
            for (name,) in connection.execute(
                # tables that a module of code makes up have no page
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0"
            )
        )
        self._check_views({str(name): str(text) for kind, name, text in entries if kind == "view"})
        self._check_tables([(kind, str(text)) for kind, _, text in entries])
        connection.set_authorizer(self._answer)

    def inconsistency(self, connection: sqlite3.Connection) -> str:
        """What SQLite finds wrong with the pages of a restricted connection, in its words: rows out
        of order where an old page stands in place of a new one, which are read without an error.

        Nothing where a module of code would be asked, and where the question itself fails: then
        reading fails, too, where it matters.
        """
        if self._unreadable:
            return ""
        try:
            (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.Error:
            return ""
        words = " ".join(str(answer).replace("*** in database main ***", "").split())
        return "" if words == "ok" else words[:_LONGEST_ANSWER]

    def _check_views(self, views: dict[str, str]) -> None:
        """SQLite copies a view into each place that names it, before it asks for any permission:
        thirty views that each name the one before twice are a thousand million.
        """
        cost: dict[str, int] = {}
        words = {name: Counter(_words(text)) for name, text in views.items()}
        known = {name.lower(): name for name in views}

        def size(name: str, depth: int) -> int:
            if depth > 64:
                return _MOST_VIEWS_IN_A_VIEW + 1
            if name not in cost:
                cost[name] = 1 + sum(
                    count * size(known[word], depth + 1)
                    for word, count in words[name].items()
                    if word in known and known[word] != name
                )
            return cost[name]

        for name in views:
            if size(name, 0) > _MOST_VIEWS_IN_A_VIEW:
                self.denied = f"its view {name[:80]} is made of too many others"
                raise sqlite3.DataError(self.denied)

    def _check_tables(self, entries: list[tuple[str, str]]) -> None:
        """Columns that are worked out when they are read, and indices of expressions: SQLite asks
        for no permission of their functions.
        """
        for kind, text in entries:
            if kind == "index" or (kind == "table" and _GENERATED.search(text)):
                called = _COSTLY.search(text)
                if called:
                    self.denied = f"it asks for the function {called[1] or called[2]}, " + _NEEDLESS
                    raise sqlite3.DataError(self.denied)

    def _answer(self, action: int, one: Any, two: Any, *_: Any) -> int:
        """SQLite's question about one part of a statement
        (https://www.sqlite.org/c3ref/c_alter_table.html has the meaning of `one` and `two`).
        """
        if action == sqlite3.SQLITE_SELECT:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_READ:
            if one not in self._unreadable:
                return sqlite3.SQLITE_OK
            what = f"the table {one}, which code of a module makes up"
        elif action == sqlite3.SQLITE_FUNCTION:
            if str(two).lower() in _FUNCTIONS:
                return sqlite3.SQLITE_OK
            what = f"the function {two}"
        elif action == sqlite3.SQLITE_PRAGMA and str(one).lower() in _PRAGMAS:
            return sqlite3.SQLITE_OK
        elif action == sqlite3.SQLITE_RECURSIVE:
            what = "a view that is defined by itself"
        else:
            what = f"more than reading (action {action})"
        self.denied = self.denied or f"it asks for {what[:120]}, {_NEEDLESS}"
        return sqlite3.SQLITE_DENY


def _peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())

"""`hotspots --by sequence`: recurring sequences of short kernels, in each form."""

from __future__ import annotations

import sys

import msgspec

from profharness.cli.listing.line import TABLE_ROWS, Form, HotspotsLine, say
from profharness.errors import UsageError
from profharness.report.sequences.tables import (
    sequences_csv,
    sequences_markdown,
    sequences_text,
)
from profharness.rundir.shown.screen import encoded
from profharness.understand.loose.sequences import sequences_of
from profharness.understand.operator_work import operator_input


def list_sequences(line: HotspotsLine) -> None:
    """Print them. Raises UsageError for options that mean nothing for them, and for several files:
    a sequence is one of one stream.
    """
    form = line.shown
    if line.samples or form in (Form.SPEEDSCOPE, Form.FOLDED):
        option = "--samples" if line.samples else f"--format {form.value}"
        raise UsageError(f"{option} is not for rows by sequence", "leave it out")
    if len(line.paths) > 1:
        raise UsageError("rows by sequence are of one run or file", "name one")
    given = operator_input(line.formulas, line.capture_trace)
    table, loaded = sequences_of(line.paths[0], line.pass_name, given)
    say(loaded.trace.problems)
    cut = msgspec.structs.replace(table, rows=table.rows[: line.top])
    if form is Form.JSON:
        text = msgspec.json.format(encoded(cut), indent=2).decode() + "\n"
    elif form is Form.CSV:
        text = sequences_csv(cut, raw=line.raw_csv)
    else:
        as_text = sequences_markdown if form is Form.MD else sequences_text
        text = as_text(table, line.top or TABLE_ROWS)
    sys.stdout.write(text)

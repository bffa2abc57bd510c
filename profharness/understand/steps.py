"""Which ranges of the program are the steps of what was loaded: those that were asked for, else
those that the run recorded, else names that say it.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from profharness.errors import UsageError
from profharness.findings import finding
from profharness.rundir.foreign.patterns import why_not
from profharness.trace.parts import step_ranges
from profharness.understand.load import Loaded


def stepped(loaded: Loaded, asked: str = "", *, must: bool = True) -> Loaded:
    """What was loaded, with its steps. `asked` is a regular expression for whole names of ranges;
    empty: what the run recorded.

    Where no range matches what was recorded, a finding says so, and other steps stay; so it does
    for what was asked for unless it `must` match. Raises UsageError for an expression that is none,
    for one that must match and does not, and for a scan, whose steps are its trials.
    """
    manifest = loaded.manifest
    if asked and manifest is not None and manifest.kind == "scan":
        raise UsageError(
            "--step-range: a scan's steps are its trials",
            "leave it out; it is for commands and trace files",
        )
    pattern = asked or ("" if manifest is None else manifest.step_range)
    if pattern and not asked and (why := why_not(pattern)):
        message = f"the recorded step range {pattern[:80]!r} is not used: {why}"
        unused = finding("step-range-unmatched", message, pattern=pattern[:80])
        return stepped(_without_range(replace(loaded, findings=(*loaded.findings, unused))))
    if pattern:
        matching = step_ranges.matching(loaded.trace, pattern)
        if matching is not None:
            return replace(loaded, trace=matching.trace, steps_from=matching.words)
        error = step_ranges.unmatched(pattern, step_ranges.range_names(loaded.trace))
        if asked and must:
            raise error
        loaded = replace(
            loaded,
            findings=(
                *loaded.findings,
                finding("step-range-unmatched", f"{error.message}; {error.hint}", pattern=pattern),
            ),
        )
    if step_ranges.has_steps(loaded.trace):
        return loaded
    marked = step_ranges.telling(loaded.trace)
    return (
        loaded if marked is None else replace(loaded, trace=marked.trace, steps_from=marked.words)
    )


def _without_range(loaded: Loaded) -> Loaded:
    """As if the run had recorded no range as its steps."""
    assert loaded.manifest is not None
    return replace(loaded, manifest=msgspec.structs.replace(loaded.manifest, step_range=""))

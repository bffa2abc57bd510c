"""The syntax of OpenMetrics text (https://prometheus.io/docs/specs/om/open_metrics_spec/)."""

from __future__ import annotations

from collections.abc import Mapping

from profharness.rundir.shown.screen import one_line

_LONGEST = 200


def head_of(family: str, kind: str, unit: str, text: str) -> str:
    """The lines before a family's samples."""
    unit_line = f"# UNIT {family} {unit}\n" if unit else ""
    return f"# TYPE {family} {kind}\n{unit_line}# HELP {family} {escaped(text)}\n"


def labels_of(given: Mapping[str, object]) -> str:
    """Labels in their braces, each value cut to 200 characters of one line."""
    pairs = ",".join(
        f'{name}="{escaped(one_line(str(value), _LONGEST))}"' for name, value in given.items()
    )
    return f"{{{pairs}}}"


def escaped(text: str) -> str:
    """As it stands in a label's value or a help."""
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')

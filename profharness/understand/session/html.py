"""What a notebook shows of a run or of trace files: the verdict, and one small table. No scripts,
no styles; names from files are escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from profharness.analysis.records import Summary
from profharness.report.text.figures import figure_text, is_known
from profharness.report.text.labels import point_names
from profharness.report.text.measured.vendors import as_read
from profharness.report.text.names import title_of
from profharness.report.text.sentences import sentences
from profharness.rundir.shown.screen import one_line

_POINTS, _FIGURES, _LONGEST = 12, 8, 2_000
_OF_POINTS = ("throughput", "latency_p50", "busy")
_OF_WHOLE = ("step_time", "busy", "gpu_percent", "fill", "mfu", "bandwidth_share", "power_w")


def brief(summary: Summary, kind: str) -> str:
    """The whole as HTML; `kind` is what the object is called."""
    summary = as_read(summary)
    parts = [f"<p><b>{_text(kind)}</b> {_text(summary.source)}</p>"]
    if summary.run is not None:
        said = sentences(summary)
        parts += [f"<p>{_text(line)}</p>" for line in (said.answer, said.next) if line]
    elif summary.verdict is not None:
        parts.append(f"<p>{_text(summary.verdict.text)}</p>")
    elif summary.verdict_needs:
        parts.append(f"<p>No verdict: it takes {_text(summary.verdict_needs)}</p>")
    parts.append(_points(summary) if summary.points else _figures(summary))
    serious = sum(item.severity != "info" for item in summary.findings)
    if serious or summary.problems:
        parts.append(
            f"<p>{serious} findings in <code>.findings</code>, {len(summary.problems)} notes of "
            "readers in <code>.problems</code></p>"
        )
    return "\n".join(parts)


def _points(summary: Summary) -> str:
    points = summary.points[:_POINTS]
    names = [name for name in _OF_POINTS if any(is_known(one.metrics.get(name)) for one in points)]
    rows = [
        (label, *(figure_text(one.metrics.get(name)) for name in names))
        for label, one in zip(point_names(summary, points), points, strict=True)
    ]
    more = len(summary.points) - len(points)
    rest = f"<p>and {more} more points: <code>.points.to_pandas()</code></p>" if more else ""
    return _table(("point", *(title_of(name) for name in names)), rows) + rest


def _figures(summary: Summary) -> str:
    measured = {name: figure for name, figure in summary.metrics.items() if is_known(figure)}
    first = [name for name in _OF_WHOLE if name in measured]
    chosen = (first + [name for name in measured if name not in first])[:_FIGURES]
    return _table(
        ("figure", "value"), [(title_of(name), figure_text(measured[name])) for name in chosen]
    )


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{_text(one)}</th>" for one in heads)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>\n" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    return html.escape(one_line(text, _LONGEST))

"""The page of a certificate: the answer, the criteria, the conditions, and what it rests on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from profharness.analysis.certificate.document import Certificate, rests
from profharness.analysis.certificate.records import Judged, State
from profharness.report.certificate.words import GROUPS, limit_text, value_text
from profharness.report.sheets.frame import rendered
from profharness.report.table import Cell, Column, Emphasis, Table
from profharness.units import format_bytes

BRAND = "profharness certificate"
_UNBROKEN = "\u00a0"
_COLOURS: dict[State, Emphasis] = {
    "met": "",
    "not met": "error",
    "not judged": "warning",
    "not applicable": "muted",
}


def render(certificate: Certificate, document: str, *, in_run: bool) -> str:
    """The whole page; `document` is the name of the JSON file beside it, `in_run` whether both lie
    in the run directory.
    """
    judgement = certificate.judgement
    return rendered(
        "certificate.html.j2",
        title=f"{judgement.outcome.capitalize()}: {certificate.run}",
        brand=BRAND,
        facts=tuple(_facts(certificate)),
        answer=judgement.answer,
        outcome=judgement.outcome,
        tables_of=tuple(
            (title, lead, _criteria([one for one in judgement.judged if one.group == group]))
            for group, (title, lead) in GROUPS.items()
        ),
        recorded=judgement.facts,
        rests=_rests(certificate),
        left_out=certificate.left_out,
        check=f"profharness certify --check {shlex.quote(document)}{'' if in_run else ' RUN'}",
        criteria=judgement.criteria,
        made_by=certificate.profharness,
    )


def _facts(certificate: Certificate) -> Iterator[str]:
    yield certificate.judgement.device or "no device recorded"
    if certificate.judgement.point:
        yield certificate.judgement.point
    yield f"run of {certificate.made}"
    yield f"certified {certificate.certified}"


def _criteria(judged: list[Judged]) -> Table:
    rows = tuple(
        (
            Cell(one.id),
            Cell(one.state.replace(" ", _UNBROKEN), emphasis=_COLOURS[one.state]),
            Cell(
                value_text(one),
                value=one.value if one.value is not None else "",
                below=limit_text(one),
            ),
            Cell(_sentence(one), below=_below(one)),
        )
        for one in judged
    )
    columns = (
        Column("criterion"),
        Column("state"),
        Column("found, and threshold", "right"),
        Column("why"),
    )
    return Table("Criteria", columns, rows)


def _sentence(one: Judged) -> str:
    return one.text[:1].upper() + one.text[1:]


def _below(one: Judged) -> str:
    return f"needs {one.needs}" if one.needs else one.source


def _rests(certificate: Certificate) -> Table:
    rows = tuple(
        (
            Cell(rest.name),
            Cell(str(rest.files), value=rest.files),
            Cell(format_bytes(rest.size_bytes), value=rest.size_bytes),
            Cell(rest.sha256),
        )
        for rest in rests(certificate.files)
    )
    columns = (
        Column("records"),
        Column("files", "right"),
        Column("size", "right"),
        Column("SHA-256 of their list"),
    )
    return Table("Records", columns, rows)

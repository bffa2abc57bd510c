"""The documents say what the code says: every citation leads somewhere, nothing is left out."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from profharness.analysis.curves.records import Series
from profharness.analysis.metrics import METRICS
from profharness.analysis.records import TraceCounts
from profharness.cli import COMMANDS
from profharness.findings import CATALOGUE
from profharness.layers import members
from profharness.readers import FORMATS, member
from profharness.report.text.names import title_of
from profharness.rundir.manifest import Manifest
from profharness.trace.model import Strings, Trace
from profharness.trace.sample_metrics import SAMPLE_METRICS

ROOT = next(
    folder for folder in Path(__file__).resolve().parents if (folder / "pyproject.toml").is_file()
)
DOCS = ROOT / "docs"
CITED = re.compile(r"docs/([\w-]+\.md)#([\w-]+)")
LINKED = re.compile(r"\]\(([\w-]+\.md)?#([\w-]+)\)")
EXPLICIT = re.compile(r'<a id="([^"]+)"></a>')
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = (
    "metrics.md",
    "findings.md",
    "formats.md",
    "run-directory.md",
    "json.md",
    "frames.md",
    "python.md",
    "command-line.md",
    "architecture.md",
    "extending.md",
    "formulas.md",
)


@cache
def text_of(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def headings(name: str) -> list[str]:
    return HEADING.findall(FENCED.sub("", text_of(name)))


@cache
def anchors(name: str) -> frozenset[str]:
    """Explicit ids, and the slugs that GitHub makes of headings.

    A slug is in lower case, without punctuation, with hyphens for blanks. Of equal ones the
    later are numbered.
    """
    if not (DOCS / name).is_file():
        return frozenset()
    met: Counter[str] = Counter()
    found = set(EXPLICIT.findall(text_of(name)))
    for heading in headings(name):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{slug}-{met[slug]}" if met[slug] else slug)
        met[slug] += 1
    return frozenset(found)


def citing() -> list[Path]:
    code = [
        path
        for folder in ("profharness", "wrappers", "tests")
        for path in (ROOT / folder).rglob("*.py")
    ]
    return sorted([*code, *DOCS.glob("*.md"), ROOT / "README.md"])


def words(text: str) -> str:
    return " ".join(text.split())


def row_of(name: str) -> list[str]:
    """The cells of the table row of this figure in the document on metrics."""
    found = re.findall(rf"^\| `{re.escape(name)}` \| (.*) \|$", text_of("metrics.md"), re.MULTILINE)
    assert found, f"docs/metrics.md has no row for {name}"
    return [cell.strip() for cell in found[0].split(" | ")]


def test_citations_resolve():
    lost = [
        f"{path.relative_to(ROOT)}: docs/{name}#{anchor}"
        for path in citing()
        for name, anchor in CITED.findall(path.read_text(encoding="utf-8"))
        if anchor not in anchors(name)
    ]
    assert not lost, "\n".join(lost)


def test_links_between_documents_resolve():
    lost = [
        f"docs/{path.name}: {name or path.name}#{anchor}"
        for path in sorted(DOCS.glob("*.md"))
        for name, anchor in LINKED.findall(path.read_text(encoding="utf-8"))
        if anchor not in anchors(name or path.name)
    ]
    assert not lost, "\n".join(lost)


def test_anchors_are_unique():
    for name in DOCUMENTS:
        explicit = EXPLICIT.findall(text_of(name))
        assert len(explicit) == len(set(explicit)), name
        assert len(headings(name)) == len(set(headings(name))), name


def test_findings_are_those_of_the_catalogue():
    described = list(re.findall(r"^### (.+)$", text_of("findings.md"), re.MULTILINE))
    assert described == list(CATALOGUE)


@pytest.mark.parametrize("name", sorted(CATALOGUE))
def test_a_finding_is_described_as_it_is_printed(name):
    section = (
        text_of("findings.md")
        .partition(f"\n### {name}\n")[2]
        .partition("\n## ")[0]
        .partition("\n### ")[0]
    )
    kind = CATALOGUE[name]
    assert f"Severity: {kind.severity}." in section
    assert f"What to do: {kind.advice}." in words(section)
    assert "\nFigures: " in section


def test_every_reader_has_its_heading():
    missing = {member(module).name for module in FORMATS} - set(headings("formats.md"))
    assert not missing


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_described_as_it_is_computed(metric):
    title, unit, better, needs, definition = row_of(metric.name)
    assert (title, unit, better) == (title_of(metric.name), metric.unit, metric.better)
    assert needs == (", ".join(metric.needs) or "-")
    assert definition


def test_every_telemetry_metric_is_described():
    for metric in SAMPLE_METRICS:
        if not metric.name.startswith("xcc_busy_"):
            rows = re.findall(rf"^\| `{metric.name}` \| .*$", text_of("metrics.md"), re.MULTILINE)
            assert any(
                f"| {metric.unit} | {metric.stamp} | {metric.meaning} |" in row for row in rows
            ), metric.name


def test_counts_of_the_whole_file_are_described():
    for field in TraceCounts.__struct_encode_fields__:
        assert f"`{field}`" in text_of("metrics.md"), field
        assert f"`{field}`" in text_of("json.md"), field


def test_the_document_of_saturation_is_described():
    section = text_of("json.md").partition("## `saturation")[2].partition("\n## ")[0]
    for field in Series.__struct_encode_fields__:
        assert f"`{field}`" in section, field


def test_every_field_of_the_manifest_is_described():
    section = text_of("run-directory.md").partition("## The manifest")[2].partition("\n## ")[0]
    for field in Manifest.__struct_fields__:
        assert f"`{field}`" in section, field


def test_every_table_of_a_trace_is_described():
    for name, table in Trace(sources=(), strings=Strings()).tables():
        row = re.search(rf"^\| {name} \| .*$", text_of("formats.md"), re.MULTILINE)
        assert row, name
        assert [
            column for column in table.__dataclass_fields__ if f"`{column}`" not in row[0]
        ] == [], name


def test_every_command_and_layer_is_listed():
    for name, what in COMMANDS:
        assert f"| `{name}` | {what} |" in text_of("command-line.md")
    for layer in members():
        assert f"| `{layer.name}` | " in text_of("command-line.md")


def test_prose_is_wrapped():
    for name in DOCUMENTS:
        wide = [
            line
            for line in FENCED.sub("", text_of(name)).splitlines()
            if len(line) > 100 and not line.startswith("|")
        ]
        assert not wide, f"docs/{name}: {wide}"

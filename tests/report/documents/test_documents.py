"""A report in Markdown, PDF and as a notebook: what it says, and that foreign names stay text."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import msgspec
import pytest

from profharness import readers
from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.errors import Unavailable
from profharness.report.documents import pdf as pdf_pages
from profharness.report.documents.extract import FURTHER, HOTSPOTS, POINTS, extract
from profharness.report.documents.figures import figures
from profharness.report.documents.markdown import markdown, paragraph
from profharness.report.documents.notebook import Kind, Opened, cells
from profharness.report.documents.notebook import notebook as written_cells
from profharness.report.text.sentences import sentences
from tests.report.samples import SAMPLES


def as_markdown(summary: Summary) -> str:
    return markdown(extract(summary))


def as_pdf(summary: Summary) -> bytes:
    return pdf_pages.pdf(extract(summary), figures(summary))


def as_notebook(summary: Summary, paths: list[str], kind: Kind | None = None) -> bytes:
    kind = kind or ("run" if summary.run is not None else "recording")
    return written_cells(cells(summary, Opened(paths, kind)))


HOSTILE = "x | y `$(id)` <img src=x onerror=alert(1)> [a](http://e.org) **b** $\\alpha$"


@pytest.mark.parametrize("name", SAMPLES)
def test_markdown_says_what_the_terminal_says(name):
    summary = SAMPLES[name]()
    text, said = as_markdown(summary), sentences(summary)
    assert f"{paragraph('Answer', said.answer)}\n" in text
    assert f"{paragraph('Next', said.next)}\n" in text
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    for rows in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows.splitlines()}) == 1


def test_a_page_has_few_rows_and_counts_the_others():
    for name in SAMPLES:
        tables = extract(SAMPLES[name]()).tables
        assert all(len(table.rows) <= POINTS for table in tables)
        assert all(len(table.rows) <= HOTSPOTS for table in tables[1:])
        assert all(len(table.rows) <= FURTHER for table in extract(SAMPLES[name]()).further)


def test_copies_and_memory_are_told(shared: Path):
    """Those of the terminal and the page, in the page's first rows."""
    path = shared / "fixtures/kineto/h100_bert_small.json.gz"
    summary = summarise_trace(readers.read(path), str(path))
    page = extract(summary)
    copied, held = page.further
    assert (copied.title, held.title) == ("Copies by direction and size", "By operator, device 0")
    assert copied.rows[0][0].text == "device to host, pinned"
    use = next(use for use in summary.memory.uses if use.device is not None)
    assert held.rows[0][0].text == use.operators[0].name
    assert len(held.rows) + held.left_out == len(use.operators)
    text = as_markdown(summary)
    assert "**Memory** device 0: peak 96.6 MiB" in text
    assert "| before the recording" in text
    assert as_pdf(summary) != as_pdf(msgspec.structs.replace(summary, memory=None))


def test_a_table_without_room_is_left_out():
    figure = pytest.importorskip("matplotlib.figure").Figure()
    summary = next(iter(SAMPLES.values()))()
    table = extract(summary).tables[0]
    for below in (0.0, 0.04, 0.07):
        assert pdf_pages._table(figure, table, 8, below) == below
    assert figure.texts == []


def test_foreign_names_are_text():
    summary = next(iter(SAMPLES.values()))()
    named = msgspec.structs.replace(summary, run=None, source=f"{HOSTILE}.json")
    text = as_markdown(named)
    assert "\\<img" in text
    assert not re.search(r"(?<!\\)<img|(?<!\\)`\$|(?<!\\)\[a\]", text)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_notebook_is_valid_and_opens_what_it_is_of(name):
    nbformat = pytest.importorskip("nbformat")
    summary = SAMPLES[name]()
    written = as_notebook(summary, ['a/it\'s "this".json'])
    assert written == as_notebook(summary, ['a/it\'s "this".json'])
    read = nbformat.reads(written.decode(), as_version=4)
    nbformat.validate(read)
    assert (read.nbformat, read.nbformat_minor) == (4, 5)
    code = [cell.source for cell in read.cells if cell.cell_type == "code"]
    assert not any(cell.outputs for cell in read.cells if cell.cell_type == "code")
    for source in code:
        ast.parse(source)
    (call,) = [node for node in ast.walk(ast.parse(code[0])) if isinstance(node, ast.Call)]
    opened = "open" if summary.run is not None else "read"
    assert ast.unparse(call.func) == f"profharness.{opened}"
    assert ast.literal_eval(call.args[0]) == 'a/it\'s "this".json'
    assert any(re.search(r"\.metrics\((points=True)?\)$", source) for source in code)


def test_a_notebook_of_several_files_reads_them_all():
    summary = msgspec.structs.replace(next(iter(SAMPLES.values()))(), run=None)
    written = json.loads(as_notebook(summary, ["a.json", "b.json"]))["cells"]
    assert "profharness.read('a.json', 'b.json')" in "".join(written[1]["source"])


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_a_pdf_is_one_page_and_the_same_each_time(name):
    pytest.importorskip("matplotlib")
    summary = SAMPLES[name]()
    page = as_pdf(summary)
    assert page.startswith(b"%PDF-")
    assert page.rstrip().endswith(b"%%EOF")
    assert len(re.findall(rb"/Type /Page\b", page)) == 1
    assert page == as_pdf(summary)


def test_without_matplotlib_a_pdf_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(Unavailable) as raised:
        pdf_pages.require_matplotlib()
    assert raised.value.exit_code == 3
    assert raised.value.hint == "pip install 'profharness[plots]'"

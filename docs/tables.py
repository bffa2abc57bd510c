"""Renews the tables in the documents that come from the code: `make tables`, or with --check say
which are stale.

A table stands between `<!-- table NAME -->` and `<!-- end of table -->`; its rows are a function
here. What the command line says of its own commands stands between `<!-- text NAME -->` and
`<!-- end of text -->`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from profharness import families, layers
from profharness.analysis.certificate.criteria import CRITERIA
from profharness.analysis.metrics import METRICS
from profharness.cli import COMMANDS
from profharness.cli.parsing.commands import load
from profharness.cli.parsing.help_screen import HelpfulCommand
from profharness.findings import CATALOGUE
from profharness.layers import releases
from profharness.layers.contract import Description, Layer
from profharness.options.declared import GENERAL, TOPICS
from profharness.report.text.names import title_of
from profharness.trace.sample_metrics import SAMPLE_METRICS
from profharness.trace.series.names import Series, listed

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = (
    "README.md",
    "docs/architecture.md",
    "docs/command-line.md",
    "docs/rocm.md",
    "docs/reference/commands.md",
    "docs/reference/figures.md",
    "docs/reference/layers.md",
    "docs/benchmarks.md",
    "docs/how-to/prometheus.md",
    "docs/certificate.md",
)
BOTH = ("cli",)
MEASURING = (
    "options",
    "measure",
    "supervise",
    "workers",
    "scans",
    "layers",
    "launchers",
    "serving",
    "telemetry",
)
SHARED = ("stats", "rundir", "node", "secrets", "trace", "findings")
UNDERSTANDING = ("understand", "readers", "analysis", "writers", "report")
PLAIN_FOLDERS = {
    "profharness/scans/published": "Published studies as scan files, which run by name.",
    "profharness/report/sheets/templates": "The templates of the sheets, their style and their "
    "script.",
    "profharness/report/live/templates": "The live page's templates, its style and its script.",
    "profharness/report/page/templates": "The page's templates and its style.",
    "profharness/report/page/templates/painters": "What draws the marks that ECharts does not "
    "know: one function a file, found by its name.",
    "profharness/report/page/templates/script": "The page's own script: plots, tables, texts under "
    "the pointer.",
    "wrappers": "Single programs: the probe of a node, the leash of a child process, stamping and "
    "exit status beside a tool.",
    "wrappers/hooks": "The two files that stand on the workload's import path, and nothing else.",
    "wrappers/counters": "Which hardware counters each AMD architecture has, and which fit "
    "together.",
    "wrappers/slurm": "Job scripts that `slurm-template` writes, one per tool.",
    "wrappers/containers": "A definition file, a script and a job for containers, to copy.",
}
"""What lies in the folders that are no packages, and so have no docstring."""
_MARKED = re.compile(r"(<!-- table (?P<name>\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_TEXT = re.compile(r"(<!-- text (?P<name>\w+) -->\n).*?(<!-- end of text -->)", re.DOTALL)
_SPECIAL = str.maketrans({"|": "&#124;", "<": "&lt;", ">": "&gt;", "*": "\\*", "`": "\\`"})
"""What a cell of a table would take for its own."""


SCOPES = {
    "hook": "inside the process, through a hook",
    "prefix": "around the process",
    "sidecar": "beside the process",
}


def _descriptions() -> list[Description]:
    """Our own layers in their order; what else is installed here does not count."""
    return [cast("type[Layer]", families.load(name)).about for name in layers.LAYERS]


def layer_rows() -> list[tuple[str, ...]]:
    """What each layer gives, and where it can be used."""
    return [
        ("`--profile`", "what it gives", "where"),
        *((f"`{about.name}`", about.gives, about.needs) for about in _descriptions()),
    ]


def scope_rows() -> list[tuple[str, ...]]:
    """Where each layer stands."""
    return [
        ("Layer", "Where it works"),
        *((f"`{about.name}`", SCOPES[about.scope]) for about in _descriptions()),
    ]


def release_rows() -> list[tuple[str, ...]]:
    """The tools' own versions in each ROCm release."""

    def own(version: releases.Version) -> str:
        return "-" if version == releases.BEFORE else releases.text(version)

    return [
        ("ROCm", "rocprofv3 (rocprofiler-sdk)", "rocprof-sys", "rocprof-compute"),
        *(
            (releases.text(one.rocm), own(one.sdk), own(one.systems), own(one.compute))
            for one in sorted(releases.RELEASES)
        ),
    ]


def sentence_of(folder: str) -> str:
    """What lies in the folder: the first sentence of its docstring."""
    if folder in PLAIN_FOLDERS:
        return PLAIN_FOLDERS[folder]
    tree = ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8"))
    paragraph = " ".join((ast.get_docstring(tree) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z])", paragraph)[0]


def folders_of(top: str) -> list[str]:
    """The folder and all below it that hold files of ours, each before those in it."""
    below = sorted(path for path in (ROOT / top).rglob("*") if path.is_dir())
    names = [path.relative_to(ROOT).as_posix() for path in (ROOT / top, *below)]
    held = [name for name in names if "__" not in name]
    return [
        name for name in held if name in PLAIN_FOLDERS or (ROOT / name / "__init__.py").exists()
    ]


def folder_rows(tops: Sequence[str]) -> list[tuple[str, ...]]:
    """A row per folder below these, with its sentence."""
    return [
        ("folder", "what it holds"),
        *((f"`{name}/`", sentence_of(name)) for top in tops for name in folders_of(top)),
    ]


def command_sections() -> str:
    """A section per command: what it does, its examples, and its arguments and options by topic,
    as the command's own declarations and `--help` have them.
    """
    return "\n".join(_section(name) for name, _ in COMMANDS)


def _section(name: str) -> str:
    command = load(name)
    paragraphs = [f"## {name}", *map(_paragraph, str(command.help).split("\n\n"))]
    for title, rows in _options(command).items():
        head = ("argument" if title == "Arguments" else "option", "meaning")
        lines = [head, ("---", "---"), *rows]
        table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        paragraphs.append(f"**{title}**\n\n{table}")
    return "\n\n".join(paragraphs) + "\n"


def _paragraph(text: str) -> str:
    """One paragraph of a help: those that begin with a backspace keep their lines."""
    lines = text.strip("\b\n").splitlines()
    if not text.lstrip("\n").startswith("\b"):
        return textwrap.fill(" ".join(" ".join(lines).split()), 100)
    if not lines[0].startswith(("profharness", "srun")):
        return "\n".join(("```text", *lines, "```"))
    shown = (re.sub(r"  +\((.*)\)$", r"  # \1", f"$ {line}") for line in lines)
    return "\n".join(("```console", *shown, "```"))


def _options(command: HelpfulCommand) -> dict[str, list[tuple[str, str]]]:
    """Names and meanings of all parameters, by the titles under which the help shows them."""
    context = command.make_context(command.name, [], resilient_parsing=True)
    titles = ("Arguments", GENERAL.title, *(topic.title for topic in TOPICS))
    panels: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
    for parameter in command.get_params(context):
        field = command.fields.get(str(parameter.name))
        if "--help" in parameter.opts:
            continue
        title = field.option.topic.title if field else GENERAL.title
        if parameter.param_type_name == "argument":
            title = "Arguments"
        record = command.help_row(parameter, context)
        if record is not None:
            names, meaning = (" ".join(text.split()).translate(_SPECIAL) for text in record)
            panels[title].append((f"<code>{names}</code>", meaning))
    return {title: rows for title, rows in panels.items() if rows}


TEXTS: dict[str, Callable[[], str]] = {"commands": command_sections}


def _result(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def rocprof_reader_rows() -> list[tuple[str, ...]]:
    """CPU time and memory of reading rocprofv3's files, ours and a script's with a library."""
    rows = [("file", "size", "kernels", "read by", "CPU time", "peak memory")]
    for form, result in _result("read-rocprof-2026-11-21.json")["forms"].items():
        for way, cost in result["ways"].items():
            size, kernels = result["bytes"] / 1e6, result["kernels"]
            figures = (f"{size:.0f} MB", f"{kernels:,}".replace(",", " "), way)
            costs = (f"{cost['cpu_s']:.2f} s", f"{cost['peak_mib']:.0f} MiB")
            rows.append((form, *figures, *costs))
    return rows


def sampler_rows() -> list[tuple[str, ...]]:
    """What the sampler takes of a core, and how late it is, by rate."""
    return [
        ("rate", "CPU", "late, median", "late, 99 %", "samples missed"),
        *(
            (
                f"{rate['hz']:g} Hz",
                f"{rate['cpu_percent_steady']:.2f} %",
                f"{rate['late_p50_us']:.0f} µs",
                f"{rate['late_p99_us'] / 1000:.1f} ms",
                f"{rate['missed']} of {rate['recorded'] + rate['missed']}",
            )
            for rate in _result("sampler-2026-11-23.json")["rates"]
        ),
    ]


def damaged_rows() -> list[tuple[str, ...]]:
    """How readers answered damaged traces."""
    names = {"HTA": "HolisticTraceAnalysis", "script": "a script with json and pandas"}
    columns = ("answered", "refused", "exception", "impossible", "over 500 MB")
    return [
        ("reader", *columns),
        *(
            (names.get(reader, reader), *(str(counts[column]) for column in columns))
            for reader, counts in _result("damaged-inputs-2026-11-24.json")["readers"].items()
        ),
    ]


def figure_rows() -> list[tuple[str, ...]]:
    """Every figure of a window by its title, with a link to the section that defines it."""
    places = _sections("metrics.md", r"^\| `(\w+)` \| ")
    named = sorted((title_of(metric.name), metric) for metric in METRICS)
    return [
        ("title", "key in JSON", "unit", "better"),
        *(
            (f"[{title}](../metrics.md#{places[one.name]})", f"`{one.name}`", one.unit, one.better)
            for title, one in sorted(named, key=lambda pair: pair[0].casefold())
        ),
    ]


def telemetry_rows() -> list[tuple[str, ...]]:
    """Every metric of telemetry; the first of those that each compute die has."""
    shown = [one for one in SAMPLE_METRICS if not re.fullmatch(r"xcc_busy_[1-9]\d*", one.name)]
    return [
        ("key", "unit", "what it is"),
        *((f"`{one.name}`", one.unit, one.meaning) for one in shown),
    ]


def series_rows() -> list[tuple[str, ...]]:
    """Every series of telemetry by our metric, and what differs from Omnistat's of that name."""

    def told(series: Series, differs: str) -> str:
        unit = f"; {series.unit}" if series.unit else ""
        fixed = ", ".join(f'{name}="{value}"' for name, value in series.labels)
        labels = f"; {fixed}" if fixed else ""
        return f"{series.kind}{unit}{labels}{f'. Here: {differs}' if differs else ''}"

    shown = [one for one in listed() if not re.fullmatch(r"xcc_busy_[1-9]\d*", one[0])]
    return [
        ("metric", "series", "kind, unit, labels, and what differs from Omnistat"),
        *(
            (f"`{metric}`", f"`{series.sample}`", told(series, differs).translate(_SPECIAL))
            for metric, series, differs in shown
        ),
    ]


def criterion_rows() -> list[tuple[str, ...]]:
    """Each criterion of a certificate: when it is met, its threshold, and what it needs."""
    return [
        ("Criterion", "Of", "Met if", "Threshold", "Needs"),
        *(
            (
                f"`{one.id}`",
                one.group,
                one.rule.translate(_SPECIAL),
                "" if not one.threshold else f"{100 * one.threshold:g} %",
                one.needs.translate(str.maketrans({"|": "&#124;"})),
            )
            for one in CRITERIA
        ),
    ]


def finding_rows() -> list[tuple[str, ...]]:
    """Every finding, with its severity and what to do."""
    return [
        ("finding", "severity", "what to do"),
        *(
            (f"[{kind.id}](../findings.md#{kind.id})", kind.severity, kind.advice)
            for kind in sorted(CATALOGUE.values(), key=lambda kind: kind.id)
        ),
    ]


def _sections(document: str, row: str) -> dict[str, str]:
    """The anchor nearest above each row of a table that the expression finds, by its group."""
    found: dict[str, str] = {}
    anchor = ""
    for line in (ROOT / "docs" / document).read_text(encoding="utf-8").splitlines():
        if named := re.match(r'<a id="([^"]+)"></a>|#+ (.+)', line):
            anchor = named[1] or re.sub(r"[^\w\- ]", "", named[2].lower()).replace(" ", "-")
        if match := re.match(row, line):
            found.setdefault(match[1], anchor)
    return found


def _of_package(names: Sequence[str]) -> Callable[[], Sequence[Sequence[str]]]:
    return lambda: folder_rows([f"profharness/{name}" for name in names])


TABLES: dict[str, Callable[[], Sequence[Sequence[str]]]] = {
    "layers": layer_rows,
    "scopes": scope_rows,
    "releases": release_rows,
    "both": _of_package(BOTH),
    "measuring": _of_package(MEASURING),
    "shared": _of_package(SHARED),
    "understanding": _of_package(UNDERSTANDING),
    "wrappers": lambda: folder_rows(["wrappers"]),
    "rocprof_readers": rocprof_reader_rows,
    "sampler": sampler_rows,
    "damaged": damaged_rows,
    "figures": figure_rows,
    "findings": finding_rows,
    "telemetry": telemetry_rows,
    "series": series_rows,
    "criteria": criterion_rows,
}


def renewed(text: str) -> str:
    """The document with its tables as the code has them now. Raises KeyError for an unknown
    name.
    """

    def table(match: re.Match[str]) -> str:
        head, *rows = TABLES[match["name"]]()
        lines = [head, ["---"] * len(head), *rows]
        return match[1] + "".join(f"| {' | '.join(cells)} |\n" for cells in lines) + match[3]

    def words(match: re.Match[str]) -> str:
        return f"{match[1]}\n{TEXTS[match['name']]()}\n{match[3]}"

    return _TEXT.sub(words, _MARKED.sub(table, text))


def main(arguments: Sequence[str]) -> int:
    """1 where a table was stale and is only to be checked, else 0."""
    parser = argparse.ArgumentParser(description="Renew the tables that come from the code.")
    parser.add_argument("--check", action="store_true", help="only say which documents are stale")
    check = parser.parse_args(arguments).check
    stale = False
    for name in DOCUMENTS:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            stale = True
            print(f"{name}: {'stale, renew it with: make tables' if check else 'renewed'}")
            if not check:
                path.write_text(new, encoding="utf-8")
    return int(stale and check)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

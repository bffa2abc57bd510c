"""`profharness export`: the tables of a run or of trace files for other programs."""

from __future__ import annotations

import warnings
from enum import Enum
from pathlib import Path
from typing import Annotated

import msgspec

from profharness.options.declared import Option
from profharness.options.tables import RawCsv
from profharness.rundir.shown.screen import mention


class Form(str, Enum):
    """What is written."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    XLSX = "xlsx"
    OPENMETRICS = "openmetrics"


class ExportLine(msgspec.Struct, frozen=True, kw_only=True):
    """What a line of `export` asks for."""

    paths: Annotated[
        tuple[Path, ...],
        Option("A run directory, or trace files together.", argument=True, metavar="RUN|FILE..."),
    ]
    output: Annotated[
        Path,
        Option(
            "Where to write: a folder of one file per table (parquet, csv, json), or a file.",
            names=("--output", "-o"),
        ),
    ]
    form: Annotated[
        Form,
        Option(
            "parquet, csv, json, xlsx, or openmetrics: the metrics, and telemetry as time series.",
            names=("--format",),
        ),
    ] = Form.PARQUET
    raw_csv: RawCsv = False
    force: Annotated[bool, Option("Overwrite files that exist.")] = False


def export(line: ExportLine) -> None:
    """Write the tables of a run or of trace files, its points and metrics, for other programs.

    \b
    profharness export traces/demo -o demo-tables
    profharness export trace.json.gz -o trace.xlsx --format xlsx
    profharness export traces/demo -o demo.prom --format openmetrics
    """
    from profharness.understand.export import command

    with warnings.catch_warnings(record=True) as told:  # what readers lost
        warnings.simplefilter("always")
        made = command.export(
            line.paths, line.output, line.form.value, force=line.force, raw=line.raw_csv
        )
    for one in told:
        mention(f"warning: {one.message}")
    for sentence in made.left_out:
        mention(sentence)
    mention(f"made {line.output}" + (f" ({len(made.paths)} files)" if len(made.paths) > 1 else ""))

"""The JSON Schema of scan files takes what a scan file may hold, and refuses the rest as the
program does.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from typing import Any

import pytest

from profharness.errors import UsageError
from profharness.options.declared import declared
from profharness.options.request import Request
from profharness.options.schema import schema_of
from profharness.options.settings import from_mapping
from profharness.scans import studies

SCHEMA = schema_of(Request, "a scan file")
_KINDS: Mapping[str, tuple[type, ...]] = {
    "integer": (int,),
    "number": (int, float),
    "string": (str,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}
_KNOWN = {
    "$schema",
    "title",
    "type",
    "properties",
    "additionalProperties",
    "description",
    "default",
    "examples",
    "enum",
    "anyOf",
    "items",
    "pattern",
    "minimum",
    "exclusiveMinimum",
    "maximum",
}


def fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether a value keeps to a schema that uses no keyword but the known ones."""
    assert set(schema) <= _KNOWN
    if "anyOf" in schema and not any(fits(value, part) for part in schema["anyOf"]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if "type" in schema and not _is_of(value, schema["type"]):
        return False
    if isinstance(value, str):
        return re.search(schema.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return all(fits(one, schema.get("items", {})) for one in value)
    if isinstance(value, dict):
        return _fits_table(value, schema)
    return isinstance(value, bool) or _in_range(value, schema)


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and isinstance(value, bool) == (kind == "boolean")


def _in_range(value: float, schema: Mapping[str, Any]) -> bool:
    return (
        value >= schema.get("minimum", value)
        and value <= schema.get("maximum", value)
        and ("exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"])
    )


def _fits_table(table: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    return all(
        fits(value, known[key]) if key in known else others is not False and fits(value, others)
        for key, value in table.items()
    )


@pytest.mark.parametrize("name", studies.names())
def test_published_scan_files_keep_to_the_schema(name: str) -> None:
    path = studies.path_of(name)
    assert path is not None
    assert fits(tomllib.loads(path.read_text(encoding="utf-8")), SCHEMA)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ('batch_sizes = "4..2048"', True),
        ('batch_sizes = "120..132:4, 7"', True),
        ("batch_sizes = [1, 4]", True),
        ('batch_sizes = "4.."', False),
        ("batch_sizes = [0]", False),
        ("batch_sizes = 4", False),
        ('rate = "10,20.5"', True),
        ("rate = [10]", True),
        ("rate = [-1.0]", False),
        ('warmup = "auto"', True),
        ("warmup = 3", True),
        ("warmup = true", False),
        ("trials = 2", True),
        ("trials = 1", False),
        ("telemetry_hz = 5000.0", False),
        ('order = "random"', True),
        ('order = "up"', False),
        ('backend = ["torch", "onnxruntime"]', True),
        ('backend = ["tensorrt"]', False),
        ("[shape]\npf_points = [2, 100]", True),
        ('shape = "pf_points:2,100"', True),
        ("shape = 5", False),
        ("batch_size = [1]", False),
        ("[run]\ntrials = 3", False),
    ],
)
def test_the_schema_and_the_program_agree(text: str, right: bool) -> None:
    table = tomllib.loads(text)
    assert fits(table, SCHEMA) is right
    if right:
        from_mapping({"via": "triton", **table} if "rate" in table else table, "scan.toml")
    else:
        with pytest.raises(UsageError):
            from_mapping(table, "scan.toml")


def test_every_setting_is_described() -> None:
    properties = SCHEMA["properties"]
    assert list(properties) == [field.name for field in declared(Request)]
    assert all(each["description"] for each in properties.values())
    assert all(fits(each["default"], each) for each in properties.values() if "default" in each)


def test_the_command_prints_the_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "profharness", "schema"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["properties"] == SCHEMA["properties"]

"""The Grafana dashboard asks only for series that we export, and its panels do not overlap."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest

from profharness.trace.series.names import listed, sample_names

PATH = Path(__file__).parents[2] / "docs" / "how-to" / "grafana" / "telemetry.json"
WORDS = frozenset({"rate", "sum", "avg", "by", "scalar", "quantile", "label_values"})
LABELS = frozenset(
    {"host", "device", "card", "interface", "device_class", "accel", "vendor", "location"}
    | {"file_system"}
)


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text(encoding="utf-8"))
    return found


def names_in(expression: str) -> set[str]:
    """The names of series, without functions, labels and what stands in braces and brackets."""
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]", "", expression)
    return set(re.findall(r"[a-zA-Z_]\w*", bare)) - WORDS - LABELS


def expressions() -> list[str]:
    variables = [
        one["query"]["query"] for one in board()["templating"]["list"] if "host" in one["name"]
    ]
    return [
        *variables,
        *(target["expr"] for panel in board()["panels"] for target in panel["targets"]),
    ]


@pytest.mark.parametrize("expression", expressions())
def test_every_series_is_one_that_we_export(expression: str) -> None:
    names = names_in(expression)
    assert names
    assert names <= sample_names()
    assert expression.count("(") == expression.count(")")
    summed = {series.sample for _, series, _ in listed() if series.summed}
    assert ("rate(" in expression) == bool(names & summed)  # amounts as rates, and only those


def test_names_are_found_in_an_expression() -> None:
    text = 'sum by (host) (rate(a_total{host=~"$host"}[5m])) / scalar(quantile(0.5, b))'
    assert names_in(text) == {"a_total", "b"}


def test_legends_name_labels_that_exist() -> None:
    for panel in board()["panels"]:
        for target in panel["targets"]:
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= LABELS


def test_panels_have_ids_and_places_of_their_own() -> None:
    panels = board()["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for one, other in itertools.combinations([panel["gridPos"] for panel in panels], 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart
    assert {panel["datasource"]["uid"] for panel in panels} == {"${source}"}

"""Scrapes as Prometheus does them: a real request, and prometheus-client's strict parser."""

from __future__ import annotations

import urllib.request
from typing import Any

OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def fetched(url: str, accept: str = OPENMETRICS) -> tuple[str, str]:
    """The content type and the text."""
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def families(text: str) -> list[Any]:
    """What the strict parser makes of it. Raises ValueError for a text that is no OpenMetrics."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    return list(text_string_to_metric_families(text))


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Values by name and labels (without the host); each label set stands there once."""
    found = {}
    for family in families(text):
        for sample in family.samples:
            labels = {name: value for name, value in sample.labels.items() if name != "host"}
            key = (sample.name, tuple(sorted(labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


def of(text: str, name: str, **labels: str) -> float | None:
    """The value of one sample; None where there is none."""
    return samples(text).get((name, tuple(sorted(labels.items()))))

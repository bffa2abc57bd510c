"""A source of one value that never changes."""

from __future__ import annotations

from typing import Any

from profharness.telemetry.sources import Column, Missing, SampledDevice, Source, Target


class DemoSource:
    """The answer."""

    name = "demo"
    max_hz = 10.0
    columns: tuple[Column, ...] = ()
    devices: tuple[SampledDevice, ...] = ()

    def probe(self) -> tuple[Missing, ...]:
        self.columns = (Column("demo", "1", "instant"),)
        return ()

    def read(self, row: list[Any], at: int) -> None:
        row[at] = 42


def open_sources(target: Target) -> tuple[Source, ...]:
    return (DemoSource(),)

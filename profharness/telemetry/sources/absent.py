"""Stands for a family that has no device here: gives its reason and nothing else."""

from __future__ import annotations

from profharness.telemetry.sources import Column, Missing, SampledDevice


class AbsentSource:
    """A source without columns, so that the sampler never reads it."""

    max_hz = 1.0
    columns: tuple[Column, ...] = ()
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self.why = why

    def probe(self) -> tuple[Missing, ...]:
        return (Missing(self.name, self.why),)

    def read(self, row: list[int | float], at: int) -> None:  # noqa: ARG002 - part of the contract
        raise AssertionError("a source without columns is never read")

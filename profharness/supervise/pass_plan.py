"""What is decided of one pass before it starts. `measure.schedule` decides it."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.layers.contract import Layer, Purpose

BARE = "bare"
"""The name of the pass without layers, from which throughput and latency come."""


@dataclass(frozen=True)
class PassPlan:
    """One pass: its layers in the order in which they wrap, the targets (backends, or the command),
    its hardware counters (with `groups` in one execution, each in a replay of its own), and what
    else it is for.
    """

    name: str
    layers: tuple[Layer, ...]
    targets: tuple[str, ...]
    counters: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    purpose: Purpose | None = None

    @property
    def perturbing(self) -> bool:
        """Whether no time of this pass may be used."""
        return bool(self.counters or self.purpose) or any(
            layer.about.perturbing for layer in self.layers
        )

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The names of its layers, in their order."""
        return tuple(layer.name for layer in self.layers)

    @property
    def tool(self) -> Layer | None:
        """The layer that stands around the process as a program of its own; None where there are
        only hooks, or nothing.
        """
        return next((layer for layer in self.layers if layer.about.scope == "prefix"), None)

"""Layers -> passes: what may run together, how often the workload is executed, and why. Pure.

A scan gets a bare pass first, then one pass per set of layers that can share an execution. A command is
executed once; layers that cannot share need further passes, which the user must allow.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profharness.errors import UsageError
from profharness.layers import COMMAND, Layer

BARE = "bare"


@dataclass(frozen=True)
class PassPlan:
    """One execution: its layers in the order in which they wrap, and the targets (backends, or the command)."""

    name: str
    layers: tuple[Layer, ...]
    targets: tuple[str, ...]

    @property
    def layer_names(self) -> tuple[str, ...]:
        return tuple(layer.name for layer in self.layers)


@dataclass(frozen=True)
class Plan:
    """The passes in order, and a sentence for each decision."""

    passes: tuple[PassPlan, ...]
    reasons: tuple[str, ...] = ()


def plan_scan(layers: Sequence[Layer], backends: Sequence[str]) -> Plan:
    """A bare pass over all backends, then the layers' passes over those that they attach to.

    Raises UsageError for a layer that has nothing to attach to.
    """
    passes = [PassPlan(BARE, (), tuple(backends))]
    reasons = ["bare: throughput and latency come from the pass without instruments"]
    for group, targets in _groups(layers, backends):
        names = "+".join(layer.name for layer in group)
        passes.append(PassPlan(names, tuple(group), targets))
        reasons.append(f"{names}: over the points of {', '.join(targets)}, with few trials")
    return Plan(tuple(passes), tuple(reasons))


def plan_command(layers: Sequence[Layer], *, bare: bool, allowed: int | None, agreed: bool) -> Plan:
    """One execution, or as many as the user allowed. Raises UsageError when more are needed than allowed."""
    groups = _groups(layers, (COMMAND,))
    passes = [PassPlan("+".join(layer.name for layer in group), tuple(group), targets) for group, targets in groups]
    if bare or not passes:
        passes.insert(0, PassPlan(BARE, (), (COMMAND,)))
    needed = len(passes) - (1 if bare and groups else 0)
    if needed > (allowed or 1) and not agreed:
        listed = ", ".join(plan.name for plan in passes)
        raise UsageError(f"these layers cannot share one execution: the command would run {len(passes)} times ({listed})",
                         f"allow it with --passes {len(passes)} or --yes, or ask for fewer layers")
    reasons = tuple(f"{plan.name}: one execution of the command" for plan in passes)
    return Plan(tuple(passes), reasons)


def _groups(layers: Sequence[Layer], targets: Sequence[str]) -> list[tuple[list[Layer], tuple[str, ...]]]:
    """Greedy in the order asked: a layer joins the first group with the same targets whose claims it does not touch."""
    groups: list[tuple[list[Layer], tuple[str, ...]]] = []
    for layer in layers:
        fits = tuple(target for target in targets if layer.attaches(target))
        if not fits:
            raise UsageError(f"--profile {layer.name} has nothing to attach to here", layer.attach_hint)
        for group, group_targets in groups:
            if group_targets == fits and all(layer.claims.isdisjoint(other.claims) for other in group):
                group.append(layer)
                break
        else:
            groups.append(([layer], fits))
    return groups

"""Layers -> passes: what may run together, how often the workload is executed, and why. Pure.

A scan gets a bare pass first, then one pass per set of layers that can share an execution, then one
per group of hardware counters and per purpose that needs a pass of its own. A command is executed
once; layers that cannot share, and counters, need further passes, which the user must allow. A
layer that perturbs the workload shares with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profharness.errors import UsageError
from profharness.layers.contract import COMMAND, Layer, Purpose, framework_of
from profharness.rundir.levels import SHARED
from profharness.supervise.pass_plan import BARE, PassPlan


@dataclass(frozen=True)
class Schedule:
    """The passes in order, and a sentence for each decision."""

    passes: tuple[PassPlan, ...]
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class OwnPasses:
    """What a layer records in passes of its own: the counters of each pass, or a purpose in one.

    `replayed`: one pass counts all groups, each in a replay of its own of every kernel. `assumed`
    says for which device the counters were planned, where the node has none to ask.
    """

    layer: Layer
    groups: tuple[tuple[str, ...], ...] = ()
    assumed: str = ""
    replayed: bool = False
    purpose: Purpose | None = None

    def plans(self, fits: tuple[str, ...]) -> list[PassPlan]:
        """The passes, over these targets."""
        own, name = (self.layer,), self.layer.name
        if self.purpose is not None:
            return [PassPlan(f"{name}-{self.purpose.name}", own, fits, purpose=self.purpose)]
        if self.replayed and len(self.groups) > 1:
            every = tuple(dict.fromkeys(name for group in self.groups for name in group))
            return [PassPlan(f"{name}-pmc1", own, fits, every, self.groups)]
        return [
            PassPlan(f"{name}-pmc{number}", own, fits, counters)
            for number, counters in enumerate(self.groups, 1)
        ]


def plan_scan(
    layers: Sequence[Layer], backends: Sequence[str], own: Sequence[OwnPasses] = ()
) -> Schedule:
    """A bare pass over all backends, then the layers' passes over those that they attach to.

    Raises UsageError for a layer that has nothing to attach to.
    """
    passes = [PassPlan(BARE, (), tuple(backends)), *_passes(layers, backends, own)]
    reasons = ["bare: throughput and latency come from the pass without instruments"]
    over = (
        "over the first, the best and the recommended point of the bare pass"
        if tuple(backends) == (COMMAND,)
        else ""
    )
    reasons += [
        f"{plan.name}: "
        + (over or f"over the points of {', '.join(plan.targets)}, with few trials")
        + _caution(plan)
        for plan in passes[1:]
    ]
    return Schedule(tuple(passes), (*reasons, *_splitting(passes), *_assumed(own)))


def plan_command(
    layers: Sequence[Layer],
    *,
    bare: bool,
    allowed: int | None,
    agreed: bool,
    own: Sequence[OwnPasses] = (),
    dry: bool = False,
) -> Schedule:
    """One execution, or as many as the user allowed. Raises UsageError when more are needed than
    allowed; a dry run only says so.
    """
    passes = _passes(layers, (COMMAND,), own)
    profiled = len(passes)
    if bare or not passes:
        passes.insert(0, PassPlan(BARE, (), (COMMAND,)))
    needed = len(passes) - (1 if bare and profiled else 0)
    reasons = tuple(f"{plan.name}: one pass over the command{_caution(plan)}" for plan in passes)
    if needed > (allowed or 1) and not agreed:
        listed = ", ".join(plan.name for plan in passes)
        why = f"these layers cannot share one execution: they need {len(passes)} passes"
        why, allow = f"{why} over the command", f"allow them with --passes {len(passes)} or --yes"
        if not dry:
            raise UsageError(f"{why} ({listed})", f"{allow}, or ask for fewer layers")
        reasons = (f"{why}; {allow}", *reasons)
    return Schedule(tuple(passes), (*reasons, *_splitting(passes), *_assumed(own)))


def _assumed(own: Sequence[OwnPasses]) -> tuple[str, ...]:
    return tuple(each.assumed for each in own if each.assumed)


def _splitting(passes: Sequence[PassPlan]) -> tuple[str, ...]:
    """What happens where the table of the architecture was too hopeful."""
    able = [plan.name for plan in passes if len(plan.counters) > 1 and not plan.groups]
    replayed = [plan.name for plan in passes if plan.groups]
    refused = "if the tool refuses these counters together"
    return (
        *(
            f"{', '.join(names)}: {refused}, {then}"
            for names, then in (
                (able, "each half of them gets an execution of its own"),
                (replayed, "one more execution counts them in groups of half the size"),
            )
            if names
        ),
    )


def _caution(plan: PassPlan) -> str:
    if plan.purpose is not None:
        return f"; {plan.purpose.does}: none of its times is used"
    if plan.groups:
        groups = ", ".join(" ".join(group) for group in plan.groups)
        return (
            f"; replays every kernel {len(plan.groups)} times and counts {groups}: "
            "each counter covers every kernel, and none of the pass's times is used"
        )
    if plan.counters:
        return (
            f"; counts {' '.join(plan.counters)}, which serialises kernels: "
            "none of its times is used"
        )
    return "; so much slower that none of its times is used" if plan.perturbing else ""


def _passes(
    layers: Sequence[Layer], targets: Sequence[str], own: Sequence[OwnPasses]
) -> list[PassPlan]:
    """The layers' passes, then those of the counters and of each purpose."""
    groups = _groups(layers, targets)
    passes = [
        PassPlan("+".join(layer.name for layer in group), tuple(group), fits)
        for group, fits in groups
    ]
    for each in own:
        passes += each.plans(_fitting(each.layer, targets))
    return passes


def _fitting(layer: Layer, targets: Sequence[str]) -> tuple[str, ...]:
    """The targets that the layer can observe; all models on one server are, where one of them
    is.
    """
    fits = {target for target in targets if framework_of(target) in layer.about.targets}
    return tuple(
        target for target in targets if target in fits or (framework_of(target) in SHARED and fits)
    )


def _groups(
    layers: Sequence[Layer], targets: Sequence[str]
) -> list[tuple[list[Layer], tuple[str, ...]]]:
    """Greedy in the order asked: a layer joins the first group with the same targets whose claims
    it does not touch.
    """
    groups: list[tuple[list[Layer], tuple[str, ...]]] = []
    for layer in layers:
        fits = _fitting(layer, targets)
        if not fits:
            raise UsageError(
                f"--profile {layer.name} has nothing to attach to here", layer.about.attach_hint
            )
        for group, group_targets in groups:
            if group_targets == fits and all(_share(layer, other) for other in group):
                group.append(layer)
                break
        else:
            groups.append(([layer], fits))
    return groups


def _share(first: Layer, second: Layer) -> bool:
    alone = first.about.perturbing or second.about.perturbing
    return not alone and first.about.claims.isdisjoint(second.about.claims)

"""The device that a workload gets where the wanted one may be missing. Imports no framework."""

from __future__ import annotations

from typing import Callable, Tuple

from profharness_workloads.shared.protocol import MISSING, Refusal

SERVES, RUNS = ("serves", "served"), ("runs", "ran")


def placed(
    wanted: str, choose: Callable[[str], str], *, allowed: bool, verb: Tuple[str, str] = RUNS
) -> Tuple[str, str]:
    """The device, and what to say when the wanted one is missing and the CPU stands in, which it
    does where that is `allowed`.

    `choose(device)` raises Refusal (MISSING) for a device that is not there.
    """
    now, past = verb
    place = "from" if verb == SERVES else "on"
    try:
        return choose(wanted), ""
    except Refusal as refusal:
        if refusal.code != MISSING:
            raise
        if not allowed:
            raise offering(refusal, "--allow-fallback %s %s the CPU" % (now, place)) from refusal
        return choose("cpu"), "%s; %s %s the CPU instead" % (refusal.message, past, place)


def offering(refusal: Refusal, way_out: str) -> Refusal:
    """The same refusal with one more way out in its hint."""
    hint = refusal.hint + "; " if refusal.hint else ""
    return Refusal(refusal.message, hint + way_out, refusal.code)

"""The words of `profharness fleet` about several models: `a=0.7,b=0.3`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from profharness.errors import UsageError

HINT = "--mix a=0.7,b=0.3 --service-ms a=10,b=3, or runs: fleet a=RUN_A b=RUN_B --mix a=0.7,b=0.3"


def shares_of(text: str) -> dict[str, float]:
    """The shares of requests by model, which make 1 together, of `a=7,b=3`; empty for no text.
    Raises UsageError for other texts.
    """
    found = _numbers("--mix", text)
    if text and ("" in found or len(found) < 2):
        raise UsageError(f"--mix: {text!r} does not name two models or more", HINT)
    total = math.fsum(found.values())
    return {name: value / total for name, value in found.items()}


def times_of(text: str, names: Sequence[str]) -> dict[str, float]:
    """Milliseconds by the names of the models, of `a=10,b=3`; by the name "" of a number alone.
    Raises UsageError for other texts, and for other names.
    """
    found = _numbers("--service-ms", text)
    _require("--service-ms", found, names)
    return {name: found[name] for name in names or [""]}


def runs_of(words: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    """Runs by the names of the models, of `a=RUN_A`; by the name "" of a run alone. Raises
    UsageError for other names, and for several runs without a mix.
    """
    if not names:
        if len(words) > 1:
            raise UsageError("fleet: several runs are models of a mix", HINT)
        return {"": Path(words[0])}
    pairs = [word.partition("=") for word in words]
    found = {name: Path(run) for name, _, run in pairs if run}
    _require("RUN", found if len(found) == len(words) else {}, names)
    return found


def _require(what: str, found: dict[str, float] | dict[str, Path], names: Sequence[str]) -> None:
    if sorted(found) != sorted(names or [""]):
        wanted = ", ".join(names) if names else "one model: --mix names more"
        raise UsageError(f"{what}: the mix is of {wanted}", HINT)


def _numbers(option: str, text: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for word in text.split(",") if text else ():
        name, _, number = word.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if not (0 < value < math.inf) or name.strip() in found:
            raise UsageError(f"{option}: {text!r} is no list of models and positive numbers", HINT)
        found[name.strip()] = value
    return found

"""The line of `profharness serve` that serves one setting of a scan of servers. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from profharness.analysis.axes.records import Parameters

_DEFAULTS: Mapping[str, object] = {
    "device": "auto",
    "instances": 1,
    "max_batch_size": None,
    "queue_delay_us": 0,
    "threads": None,
    "ort_optimization": "all",
    "autocast": "off",
    "torchscript": False,
    "allow_fallback": False,
    "python": "",
}
"""The settings of a run that `profharness serve` has too, with their defaults."""
_SWITCHES = ("torchscript", "allow_fallback")
_ON = ("on", "true", "yes")


def serve_line(settings: Mapping[str, object], parameters: Parameters) -> str:
    """`profharness serve particlenet --instances 2 ...`; empty where the server was not ours, or
    the models are not served by one line.
    """
    served = settings.get("via", "direct") != "direct"
    if not served or settings.get("url") or settings.get("server_command"):
        return ""
    asked = {**settings, **{name.replace("-", "_"): value for name, value in parameters.items()}}
    words = ["profharness", "serve", *str(asked.get("model", "")).split(",")]
    backend = _first(asked.get("backend"))
    words += ["--backend", backend] if backend else []
    for name, default in _DEFAULTS.items():
        value = asked.get(name, default)
        option = f"--{name.replace('_', '-')}"
        if name in _SWITCHES:
            words += [option] if value is True or str(value).lower() in _ON else []
        elif value != default:
            words += [option, str(value)]
    for one in _several(asked.get("provider")):
        words += ["--provider", one]
    for name, dims in _shapes(asked).items():
        words += ["--shape", f"{name}:{','.join(map(str, dims))}"]
    return shlex.join(words)


def _first(value: object) -> str:
    return str(value[0]) if isinstance(value, list | tuple) and value else _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _several(value: object) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return tuple(map(str, value)) if isinstance(value, list | tuple) else ()


def _shapes(asked: Mapping[str, object]) -> dict[str, Sequence[object]]:
    given = asked.get("shape")
    found: dict[str, Sequence[object]] = {}
    if isinstance(given, Mapping):
        found = {
            str(name): tuple(dims) for name, dims in given.items() if isinstance(dims, list | tuple)
        }
    for name, value in asked.items():
        if name.startswith("shape:"):
            found[name.removeprefix("shape:")] = str(value).split("x")
    return found

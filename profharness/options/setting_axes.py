"""Options of a scan of a model as axes, `--scan instances=1,2,4`: what each value changes in a
request. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import msgspec

from profharness.errors import UsageError
from profharness.options import providers
from profharness.options.serving import SATURATION, ServingOptions
from profharness.rundir.executions.axes import Axis

SHAPE = "shape:"
_WITHOUT_AXES: Mapping[str, Any] = {
    "axes": {},
    "design": "grid",
    "repeats": 3,
    "search": None,
    "warm_start": (),
    "require": (),
}
"""A setting by itself is no scan over axes."""
T = TypeVar("T", bound=ServingOptions)
Place = Literal["server", "client", "load"]
Runs = Literal["served", "direct", "both"]


@dataclass(frozen=True)
class Setting:
    """An option as an axis: the field of the request, how a text becomes its value, and what it
    changes: the server (each value needs one of its own), the load generator, or the load alone.
    `runs` says which scans have it.
    """

    field: str
    value: Callable[[str], object]
    place: Place
    runs: Runs = "served"


def _number(text: str) -> int:
    if not text.isdigit():
        raise ValueError
    return int(text)


def _switch(text: str) -> bool:
    words = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
    if text.lower() not in words:
        raise ValueError
    return words[text.lower()]


def _one(text: str) -> tuple[str, ...]:
    return (text,)


def _provider(text: str) -> object:
    return providers.TEXT.parse(text, providers.OPTION)


SETTINGS: Mapping[str, Setting] = {
    "instances": Setting("instances", _number, "server"),
    "queue-delay-us": Setting("queue_delay_us", _number, "server"),
    "max-batch-size": Setting("max_batch_size", _number, "server"),
    "backend": Setting("backend", _one, "server", "both"),
    "provider": Setting("provider", _provider, "server", "both"),
    "ort-optimization": Setting("ort_optimization", str, "server", "both"),
    "autocast": Setting("autocast", str, "server", "both"),
    "torchscript": Setting("torchscript", _switch, "server", "both"),
    "threads": Setting("threads", _number, "server", "both"),
    "compile": Setting("compile", _switch, "server", "direct"),
    "device": Setting("device", str, "server", "both"),
    "protocol": Setting("protocol", str, "client"),
    "shared-memory": Setting("shared_memory", str, "client"),
    "compression": Setting("compression", str, "client"),
    "ragged": Setting("ragged", _one, "client"),
    "clients": Setting("clients", _number, "client"),
    "batch": Setting("batch_sizes", lambda text: (_number(text),), "load", "both"),
    "concurrency": Setting("concurrency", lambda text: (_number(text),), "load"),
}
"""By the name of the axis, which is that of the option; `batch` is one of --batch-sizes."""
_ALIASES = {"batch-sizes": "batch", "queue-delay": "queue-delay-us"}


def setting_of(axis: str) -> Setting:
    """What an axis changes. Raises UsageError for a name that is no option of such a scan."""
    if axis.startswith(SHAPE):
        return Setting("shape", str, "client", "both")
    found = SETTINGS.get(axis)
    if found is None:
        known = _ALIASES.get(axis)
        raise UsageError(
            f"--scan {axis}: a scan of a model has no setting of that name",
            f"write --scan {known}=..." if known else f"known: {', '.join(SETTINGS)}, shape:INPUT",
        )
    return found


def varied(request: T, values: Mapping[str, str]) -> T:
    """The request of one setting, `values` by axis as written. Raises UsageError for a value that
    the option does not take.
    """
    changes: dict[str, Any] = {}
    shapes = dict(request.shape)
    for axis, text in values.items():
        setting = setting_of(axis)
        if axis.startswith(SHAPE):
            shapes[axis.removeprefix(SHAPE)] = _dims(axis, text)
            continue
        try:
            changes[setting.field] = setting.value(text)
        except ValueError:
            raise UsageError(
                f"--scan {axis}: {text} is no value of --{setting.field.replace('_', '-')}",
                "`profharness run --help all` says what it takes",
            ) from None
    return _checked(request, {**changes, "shape": shapes}, values)


def _checked(request: T, changes: Mapping[str, Any], values: Mapping[str, str]) -> T:
    """By its types and by its own checks, which speak of the option as if it had been given."""
    made = msgspec.structs.replace(request, **{**_WITHOUT_AXES, **changes})
    try:
        msgspec.convert(msgspec.to_builtins(made), type(request))
    except msgspec.ValidationError as error:
        wrong = next(
            (axis for axis in values if f"`$.{setting_of(axis).field}`" in str(error)),
            ", ".join(values),
        )
        raise UsageError(
            f"--scan {wrong}: {values.get(wrong, '')} is no value of that option",
            f"`profharness run --help all` says what it takes ({error})",
        ) from error
    return made


def _dims(axis: str, text: str) -> tuple[int, ...]:
    """`2x64` (or `64`) as dimensions without the batch."""
    parts = text.split("x")
    if not all(part.isdigit() and int(part) > 0 for part in parts):
        raise UsageError(
            f"--scan {axis}: {text} is no shape",
            f"write dimensions without the batch, such as {axis}=2x64,2x128",
        )
    return tuple(map(int, parts))


def check(request: ServingOptions, axes: Sequence[Axis]) -> None:
    """Raises UsageError where the axes are no settings of this kind of scan, or an option is given
    beside the axis that varies it.
    """
    if request.scan == SATURATION:
        raise UsageError(
            "--scan: the saturation scan finds its levels by itself",
            "leave it out, or write --via triton in place of `saturation`",
        )
    _check_kinds(request, axes)
    if not request.managed:
        moved = [axis.name for axis in axes if setting_of(axis.name).place == "server"]
        if moved:
            raise UsageError(
                f"--scan {moved[0]}: it is a setting of a server that profharness starts itself",
                "leave --url or --server-command out, or scan what clients do: batch, concurrency",
            )
    for axis in axes:
        _check_alone(request, axis)
        for value in axis.values:
            varied(request, {axis.name: value})


def _check_kinds(request: ServingOptions, axes: Sequence[Axis]) -> None:
    kind = "served" if request.served else "direct"
    for axis in axes:
        runs = setting_of(axis.name).runs
        if runs not in (kind, "both"):
            raise UsageError(
                f"--scan {axis.name}: it is a setting of a {runs} scan, and this one is {kind}",
                "add --via triton"
                if runs == "served"
                else "leave --via, --url out: served models are not compiled",
            )


def _check_alone(request: ServingOptions, axis: Axis) -> None:
    field = setting_of(axis.name).field
    default = {one.name: one.default for one in msgspec.structs.fields(type(request))}[field]
    if not axis.name.startswith(SHAPE) and getattr(request, field) != default:
        raise UsageError(
            f"--scan {axis.name} and --{field.replace('_', '-')}: both say the same",
            "leave the option out: the axis gives its values",
        )
    if field == "concurrency" and request.rate:
        raise UsageError(
            "--scan concurrency and --rate: a level is either a closed loop or an open one",
            "leave one of them out",
        )

"""Asking a server what it serves, over KServe's open inference protocol (v2) and Triton's
extensions of it, by HTTP.

Source: github.com/kserve/open-inference-protocol (required API, "Model Metadata") and Triton's
protocol/ extension_model_configuration.md. A server without the extension tells names, types and
shapes, and no batch limit.
"""

from __future__ import annotations

import http.client
import ssl
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, TypeVar

import msgspec

from profharness.errors import InputError, Unavailable
from profharness.serving.ready import HTTP_TOKEN, Model, Tensor

TIMEOUT_S = 5.0
LONGEST = 16 << 20  # bytes of an answer
_REFUSED = (401, 403)

_T = TypeVar("_T")


class _Entry(msgspec.Struct):
    name: str
    datatype: str
    shape: tuple[int, ...]


class _Metadata(msgspec.Struct):
    name: str
    versions: tuple[str, ...] = ()
    platform: str = ""
    inputs: tuple[_Entry, ...] = ()
    outputs: tuple[_Entry, ...] = ()


class _Group(msgspec.Struct):
    count: int = 1
    gpus: tuple[int, ...] = ()


class _Batching(msgspec.Struct):
    max_queue_delay_microseconds: int | str = 0  # protobuf's JSON writes 64-bit numbers as text


class _Config(msgspec.Struct):
    max_batch_size: int = 0
    instance_group: tuple[_Group, ...] = ()
    dynamic_batching: _Batching | None = None
    backend: str = ""


class Access(msgspec.Struct, frozen=True):
    """What a client shows and what it trusts: `token` is "" for none, `ca` a PEM file with the
    authority of the server's certificate, "" for those of the system.
    """

    token: str = ""
    ca: str = ""


OPEN = Access()


def answers(url: str, access: Access = OPEN) -> bool:
    """Whether a GET of `url` gives 200 now; any refusal or other answer is a no."""
    try:
        with _opened(url, access) as answer:
            return bool(answer.status == 200)
    except (OSError, ValueError, http.client.HTTPException):
        return False


def require_token(url: str, access: Access) -> None:
    """Raises Unavailable where the server answers a GET of `url` by asking for a token, or for
    another one; any other answer will do.
    """
    try:
        with _opened(url, access):
            return
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            raise _refused(url, error.code, access) from error
    except (OSError, ValueError, http.client.HTTPException):
        return


def model(base: str, name: str, access: Access = OPEN) -> Model:
    """What the server at `base` (http://host:port) tells of one model. Raises Unavailable where it
    has none of that name.
    """
    place = f"{base.rstrip('/')}/v2/models/{urllib.parse.quote(name)}"
    metadata = _get(place, _Metadata, access)
    if metadata is None:
        raise Unavailable(
            f"{base}: there is no model {name!r}, or the server does not speak KServe v2",
            "look at the server's own list of models",
        )
    config = _get(f"{place}/config", _Config, access)
    batched = config is not None and config.max_batch_size > 0
    return Model(
        name=name,
        version=max(metadata.versions, key=_number, default=""),
        max_batch_size=config.max_batch_size if config else 0,
        # the server fills in its own default group
        instances=sum(group.count * max(1, len(group.gpus)) for group in config.instance_group)
        if config
        else 0,
        inputs=_tensors(metadata.inputs, batched=batched),
        outputs=_tensors(metadata.outputs, batched=batched),
        backend=(config.backend if config else "") or metadata.platform,
        queue_delay_us=int(config.dynamic_batching.max_queue_delay_microseconds)
        if config and config.dynamic_batching
        else None,
    )


def _tensors(entries: tuple[_Entry, ...], *, batched: bool) -> tuple[Tensor, ...]:
    """Without the batch, which the metadata of a batching model puts first."""
    return tuple(
        Tensor(one.name, one.datatype, one.shape[1:] if batched else one.shape) for one in entries
    )


def _number(version: str) -> tuple[int, str]:
    return (int(version), "") if version.isdigit() else (-1, version)


def _get(url: str, kind: type[_T], access: Access) -> _T | None:
    """The decoded answer; None where the server has no such place. Raises Unavailable, or
    InputError for another kind of answer.
    """
    try:
        with _opened(url, access) as answer:
            data = answer.read(LONGEST)
    except urllib.error.HTTPError as error:
        if error.code in _REFUSED:
            raise _refused(url, error.code, access) from error
        return None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unavailable(
            f"{url}: no answer ({error})", "check the address, and that the server runs"
        ) from error
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise InputError(
            f"{url}: not an answer of KServe v2 ({error})",
            "for a server with another protocol, name no model",
        ) from error


def _refused(url: str, status: int, access: Access) -> Unavailable:
    what = "refuses the token" if access.token else "wants a token"
    return Unavailable(
        f"{url}: the server {what} ({status})",
        "give it in the variable PROFHARNESS_TOKEN, or in a file with --token-file",
    )


def _opened(url: str, access: Access) -> Any:
    """No proxy: what is measured is the way to the server itself."""
    if urllib.parse.urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(f"{url}: not an http or https address")
    headers = {HTTP_TOKEN: access.token} if access.token else {}
    asked = urllib.request.Request(url, headers=headers)  # noqa: S310  the scheme was checked
    trust = urllib.request.HTTPSHandler(
        context=ssl.create_default_context(cafile=access.ca or None)
    )
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), trust).open(
        asked, timeout=TIMEOUT_S
    )

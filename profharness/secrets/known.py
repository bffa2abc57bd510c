"""Values that the library detect-secrets knows by their shape: a second opinion beside our own
rules. Pure; the library is loaded once a text holds a word without which it finds nothing.

Left out are its two entropy plugins (kernel names and `package==1.2` are random enough for them),
public addresses (no secrets), keywords (`names` judges these, in more spellings), and private keys
(it finds the line before the key). It may ask vendors whether a key is valid: that is never asked.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from profharness.secrets.search import Part, Span, hits

_BEFORE, _BEHIND = 128, 1200  # bytes; longer than what its patterns look at
_LEAST = 8
_VALUE = re.compile(rb"""[\s"'=:]*([^\s"'\\<>,;&]+)""")


@dataclass(frozen=True)
class _Plugin:
    """A module of the library, its class, and words of which one stands in all that it finds."""

    module: str
    name: str
    stems: tuple[bytes, ...]


PLUGINS = (
    _Plugin("artifactory", "ArtifactoryDetector", (b"akc",)),
    _Plugin("aws", "AWSKeyDetector", (b"akia", b"asia", b"abia", b"acca", b"a3t", b"aws")),
    _Plugin("azure_storage_key", "AzureStorageKeyDetector", (b"accountkey=",)),
    _Plugin("cloudant", "CloudantDetector", (b"cloudant",)),
    _Plugin("github_token", "GitHubTokenDetector", tuple(b"gh%c_" % kind for kind in b"pousr")),
    _Plugin(
        "gitlab_token",
        "GitLabTokenDetector",
        (
            *(b"glpat-", b"gldt-", b"glft-", b"glsoat-", b"glrt-", b"gr1348941", b"glcbt-"),
            *(b"glimt-", b"glptt-", b"glagent-", b"gloas-"),
        ),
    ),
    _Plugin("ibm_cloud_iam", "IbmCloudIamDetector", (b"ibm",)),
    _Plugin("ibm_cos_hmac", "IbmCosHmacDetector", (b"secret_access_key", b"secret-access-key")),
    _Plugin("jwt", "JwtTokenDetector", (b"eyj",)),
    _Plugin("mailchimp", "MailchimpDetector", (b"-us",)),
    _Plugin("npm", "NpmDetector", (b"_authtoken",)),
    _Plugin("openai", "OpenAIDetector", (b"t3blbkfj",)),
    _Plugin("pypi_token", "PypiTokenDetector", (b"pypi-age",)),
    _Plugin("sendgrid", "SendGridDetector", (b"sg.",)),
    _Plugin("slack", "SlackDetector", (b"xox", b"hooks.slack.com")),
    _Plugin("softlayer", "SoftlayerDetector", (b"softlayer",)),
    _Plugin("square_oauth", "SquareOAuthDetector", (b"sq0csp-",)),
    _Plugin("stripe", "StripeDetector", (b"k_live_",)),
)
NOT_ASKED = {
    "high_entropy_strings": "takes kernel names and versions of packages",
    "ip_public": "an address is no secret",
    "keyword": "names are judged by our own rules, in every container",
    "private_key": "finds the line before the key, our own shape the key",
    "basic_auth": "has one word that every address holds; our own shape is the same",
    "discord": "matches names of modules; our own shape asks for digits in base64",
    "telegram_token": "has no word of its own; our own shape is narrower",
    "twilio": "has no word of its own; our own shape is the same between words",
}
"""Modules of the library that are not used, and why."""


def spans(text: bytes, parts: Sequence[Part], small: bytes) -> Iterator[Span]:
    """Start, end and label of the values around words that begin in these parts of a text; `small`
    is the text in small letters.
    """
    for plugin in PLUGINS:
        after = 0
        for stem in plugin.stems:
            for hit in hits(small, stem, parts):
                low, high = _window(text, hit)
                for label, value in _found(plugin, text[low:high]):
                    at = text.find(value, max(low, after), high)
                    if at >= 0:
                        after = at + len(value)
                        yield at, after, label


def stems() -> Iterator[bytes]:
    """What a text in small letters holds if the library finds anything in it."""
    for plugin in PLUGINS:
        yield from plugin.stems


def _window(text: bytes, hit: int) -> tuple[int, int]:
    """The surroundings of a word on its own line."""
    low = text.rfind(b"\n", max(hit - _BEFORE, 0), hit) + 1 or max(hit - _BEFORE, 0)
    high = text.find(b"\n", hit, hit + _BEHIND)
    return low, high if high >= 0 else min(hit + _BEHIND, len(text))


@lru_cache(maxsize=4096)
def _found(plugin: _Plugin, text: bytes) -> tuple[tuple[str, bytes], ...]:
    """Label and value of each secret in a text, once for texts that repeat."""
    detector = _detector(plugin)
    values = detector.analyze_string(text.decode("utf-8", "surrogateescape"))
    return tuple(
        (f"({detector.secret_type})", raw)
        for value in values
        if len(raw := _bare(value.encode("utf-8", "surrogateescape"))) >= _LEAST
        and any(byte in b"0123456789" for byte in raw)
    )


def _bare(value: bytes) -> bytes:
    """The value alone: some patterns take the quotes around it, or all up to the line's end."""
    match = _VALUE.match(value)
    return match[1] if match else b""


@lru_cache(maxsize=len(PLUGINS))
def _detector(plugin: _Plugin) -> Any:
    # typed only by its base class, whose methods the plugins do not keep to
    module = importlib.import_module(f"detect_secrets.plugins.{plugin.module}")
    return getattr(module, plugin.name)()

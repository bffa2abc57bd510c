"""Which names of variables, options and keys say that their value is a secret, and which values
cannot be one. Pure.

Names are judged word by word, so that AUTHOR, KEYBOARD and TOKENIZERS say nothing.
"""

from __future__ import annotations

import itertools
import re
from functools import lru_cache

MARKER = "[removed by profharness]"
MARKER_START = "[removed by profharness"
"""Every form of the mark begins with this: some carry a number, where values have to differ."""

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# secret wherever they stand in a name
_STRONG = frozenset(
    {
        "SECRET",
        "SECRETS",
        "PASSWORD",
        "PASSWORDS",
        "PASSWD",
        "PASSPHRASE",
        "APIKEY",
        "CREDENTIAL",
        "CREDENTIALS",
        "JWT",
        "SSHPASS",
        "STORAGEPASS",
        "DBPASS",
    }
)
_OWNERS = (
    *("DB", "DATABASE", "SQL", "MYSQL", "PG", "POSTGRES", "REDIS", "MONGO", "LDAP", "STORAGE"),
    *("USER", "LOGIN", "ROOT", "ADMIN", "BECOME", "SUDO", "SSH", "VNC", "IPMI", "BMC"),
    *("SMTP", "MAIL", "EMAIL", "IMAP", "FTP", "HTTP", "PROXY", "MQTT", "AMQP", "RABBITMQ", "KEY"),
)
_PAIRS = frozenset(
    {
        ("API", "KEY"),
        ("ACCESS", "KEY"),
        ("PRIVATE", "KEY"),
        ("SIGNING", "KEY"),
        ("ENCRYPTION", "KEY"),
        ("ACCOUNT", "KEY"),
        ("MYSQL", "PWD"),
        ("STORAGE", "KEY"),
        ("MUNGE", "KEY"),
        ("AUTH", "KEY"),
        ("MASTER", "KEY"),
        ("KAGGLE", "KEY"),
        ("SUBSCRIPTION", "KEY"),
        ("APP", "KEY"),
        # `pass` alone is one of a compiler, of a network or of a profiler
        *((owner, "PASS") for owner in _OWNERS),
    }
)
# secret only as the last word, and with a value long enough to be one: traces of language models
# are full of tokens
_WEAK = frozenset({"TOKEN", "AUTH", "OAUTH", "AUTHORIZATION", "COOKIE"})
_ENDINGS = ("PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "APIKEY")
_NOT_VALUES = frozenset(
    {
        "FILE",
        "PATH",
        "DIR",
        "DIRECTORY",
        "SOCK",
        "SOCKET",
        "LENGTH",
        "LEN",
        "COUNT",
        "SIZE",
        "TYPE",
        "METHOD",
        "MODE",
        "HOST",
        "PORT",
        "LIMIT",
        "TIMEOUT",
        "ENABLED",
    }
)
_OF_LANGUAGE_MODELS = frozenset(
    {"BOS", "EOS", "PAD", "UNK", "MASK", "CLS", "SEP", "SPECIAL", "ADDED", "STOP", "PER"}
)
_PLAIN = frozenset({"", "0", "1", "true", "false", "yes", "no", "on", "off", "none", "null"})
_WEAK_LENGTH = 8
_LOOSE_LENGTH = 5
# what stands where a value was: masked by whoever recorded it, or to be filled in by whoever starts
_PLACE = re.compile(
    r"(?i:\[?(?:redacted|removed|masked|hidden|censored|filtered)\b.*|redactedx+|x{4,}|\*+|<[^>]*>"
    r"|\$\{?\w+\}?|\$\(.*|\{\{.*\}\}|%\w+%|\.{3,}|your[-_ ].*)",
    re.DOTALL,
)
_EXPRESSION = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*(?:[(\[]|==)|[a-z_]+(?:\.[a-z_]+)+\)?$")
_SHORT_OPTIONS = frozenset({"pass", "pw", "pwd"})
_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"[\w.-]{1,128}")
_BLANK = re.compile(r"\s")
_METAVAR = re.compile(r"[A-Z][A-Z_]*")
_PLAIN_WORD = re.compile(r"[A-Za-z][a-z]*(?:[-_][a-z]+)*")

# every secret name holds one of these in small letters: they are found fast, and only their
# surroundings are looked at closely
STEMS = tuple(
    stem.encode()
    for stem in (
        "token",
        "secret",
        "pass",
        "key",
        "credential",
        "jwt",
        "auth",
        "cookie",
        "pwd",
    )
)
_STEM = re.compile("|".join(stem.decode() for stem in STEMS))


def looks_secret(name: str) -> bool:
    """Whether a variable, option or JSON key of this name holds a secret."""
    # of a million names of cells hardly any holds a stem, and this is the faster look
    return _STEM.search(name.upper().lower()) is not None and _strength(name) > 0


def is_secret(name: str, value: str) -> bool:
    """Whether this value of this variable is a secret that is still there."""
    strength = _strength(name)
    if not strength or value.lower() in _PLAIN or is_placeholder(value):
        return False
    if value == name:
        return False  # a list of packages and what they are called
    return strength == 2 or (len(value) >= _WEAK_LENGTH and not is_expression(value))


def is_secret_beside(name: str, value: str) -> bool:
    """As `is_loose_secret`, where the two are cells side by side, of a table that says nothing: the
    name has to look like a variable's, and the value like one word.
    """
    is_variable = _NAME.fullmatch(name) and (name.isupper() or _strength(name) == 2)
    return bool(is_variable) and is_loose_secret(name, value) and not _BLANK.search(value)


def is_given_secret(name: str, value: str) -> bool:
    """As `is_secret`, behind an option of a command line: `--pass X` names no pass of a compiler
    there, and a token may be short where it has a digit and is no number.
    """
    if is_secret(name, value):
        return True
    if len(value) < _LOOSE_LENGTH or value.isdigit() or not _DIGIT.search(value):
        return False
    is_known = _strength(name) or name.lower() in _SHORT_OPTIONS
    return bool(is_known) and not (is_placeholder(value) or is_expression(value) or "/" in value)


def is_expression(value: str) -> bool:
    """Whether this is what programs write behind `token=`: an attribute, a call, a comparison."""
    return _EXPRESSION.match(value) is not None


def is_placeholder(value: str) -> bool:
    """Whether this only stands where a secret was or will be: our own mark, `REDACTED`, stars,
    `${HF_TOKEN}`, `<your token>`.
    """
    return value.startswith(MARKER_START) or _PLACE.fullmatch(value) is not None


def is_loose_secret(name: str, value: str) -> bool:
    """As `is_secret`, where the name stands before its value as words of a sentence may, too
    (`password: X`, `--token X`): the value has to look like no word of a sentence.
    """
    if not is_secret(name, value) or len(value) < _LOOSE_LENGTH:
        return False
    if _METAVAR.fullmatch(value) or _PLAIN_WORD.fullmatch(value):
        return False
    return _strength(name) == 2 or any(letter.isdigit() for letter in value)


@lru_cache(maxsize=4096)
def _strength(name: str) -> int:
    """2 for names that say so by any word, 1 for those whose last word may mean something else, 0
    for others.
    """
    words = [word.upper() for word in _WORD.findall(name)]
    while words and words[-1].isdigit():
        words.pop()
    if not words or words[-1] in _NOT_VALUES:
        return 0
    if any(word in _STRONG or word.endswith(_ENDINGS) for word in words) or any(
        pair in _PAIRS for pair in itertools.pairwise(words)
    ):
        return 2
    is_weak = words[-1] in _WEAK or words[-1].endswith("TOKEN")
    return int(is_weak and not (len(words) > 1 and words[-2] in _OF_LANGUAGE_MODELS))

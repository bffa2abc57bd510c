"""Our own rules: values that are secret whatever their variable is called. Pure.

They are what the library of `known` lacks (model hubs, trackers, batch systems, grids), and what it
finds only in some spellings. To add one, add a line to the table: docs/secrets.md.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

# not in the middle of a word; what JSON and addresses write for another character is no word
_ESCAPED = rb"(?<=\\[bfnrt])|(?<=\\u00[0-9a-f]{2})|(?<=%[0-9A-Fa-f]{2})"
_WORD = rb"(?:(?<![A-Za-z0-9_])|" + _ESCAPED + rb")"
_HYPHENED = rb"(?:(?<![A-Za-z0-9_-])|" + _ESCAPED + rb")"
_LONGEST = 1 << 16


@dataclass(frozen=True)
class Shape:
    """`stem` stands in each value (or just before it) in small letters, at most `back` bytes behind
    the start of `core`; `sieve` finds, in RE2's syntax, what has no stem. The last group of `core`
    is the value, which `holds` may refuse. `before` and `after` tell it apart from the middle of a
    word.

    The patterns are compiled once the stem is met, which in most texts none is.
    """

    label: str
    stem: bytes
    core: bytes
    before: bytes = _WORD
    after: bytes = b""
    back: int = 0
    holds: Callable[[bytes], bool] | None = None
    sieve: str = ""


Part = tuple[int, int]
"""Start and end of a part of a text."""
Span = tuple[int, int, str]


def _is_mixed(value: bytes) -> bool:
    """Digits and letters: what people call things seldom has the digits in the middle."""
    return bool(re.search(rb"[0-9]", value[6:])) and bool(re.search(rb"[A-Za-z]", value))


def _is_no_word(value: bytes) -> bool:
    """A password rather than a group: `-u 1000:1000` and `-u root:root` name one."""
    return not value.isdigit() and re.fullmatch(rb"[a-z_-]+", value) is None


def is_login(word: str) -> bool:
    """Whether a command line's word is `name:password`."""
    name, colon, password = word.partition(":")
    return bool(name and colon and len(password) >= 3 and _is_no_word(password.encode()))


def _is_packed_key(value: bytes) -> bool:
    """Base64 of a PEM block with a private key, as configurations of Kubernetes hold it."""
    try:
        plain = base64.b64decode(value[: len(value) // 4 * 4])
    except binascii.Error:
        return False
    return b"PRIVATE KEY-----" in plain


def _prefixed(label: str, *prefixes: str, rest: bytes, after: bytes = b"") -> Iterator[Shape]:
    """Values that begin with a word of their own, told apart from the middle of a longer word."""
    for prefix in prefixes:
        raw = prefix.encode()
        # `disk-0123456789` is no key
        before = _HYPHENED if raw.startswith(b"sk-") else _WORD
        yield Shape(label, raw.lower(), b"(" + re.escape(raw) + rest + b")", before, after)


SHAPES: tuple[Shape, ...] = (
    # model hubs and vendors of models
    *_prefixed("(Hugging Face token)", "hf_", "api_org_", rest=rb"[A-Za-z0-9]{30,}"),
    *_prefixed(
        "(OpenAI key)",
        *("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"),
        rest=rb"[\w-]{20,}",
    ),
    Shape("(API key)", b"sk-", rb"(sk-[A-Za-z0-9]{32,})", _HYPHENED, holds=_is_mixed),
    *_prefixed("(Anthropic key)", "sk-ant-", rest=rb"[\w-]{20,}"),
    *_prefixed("(OpenRouter key)", "sk-or-", rest=rb"[\w-]{32,}"),
    *_prefixed("(Langfuse key)", "sk-lf-", rest=rb"[0-9a-f-]{36}"),
    *_prefixed("(Replicate token)", "r8_", rest=rb"[A-Za-z0-9]{36,}"),
    *_prefixed("(Groq key)", "gsk_", rest=rb"[A-Za-z0-9]{40,}"),
    *_prefixed("(Perplexity key)", "pplx-", rest=rb"[A-Za-z0-9]{40,}"),
    *_prefixed("(NVIDIA key)", "nvapi-", rest=rb"[\w-]{40,}"),
    *_prefixed("(xAI key)", "xai-", rest=rb"[A-Za-z0-9]{60,}"),
    *_prefixed("(Together key)", "tgp_v1_", rest=rb"[\w-]{40,}"),
    *_prefixed("(LangSmith key)", "lsv2_pt_", "lsv2_sk_", rest=rb"[0-9a-f]{32}_[0-9a-f]{10}"),
    *_prefixed("(Pinecone key)", "pcsk_", rest=rb"\w{40,}"),
    # trackers
    *_prefixed("(Weights & Biases key)", "wandb_v1_", rest=rb"\w{40,}"),
    # base64 of {"api_address":, with which every token of the tracker begins
    *_prefixed("(Neptune token)", "eyJhcGlfYWRkcmVzcyI6", rest=rb"[A-Za-z0-9+/=_-]{30,}"),
    # clouds
    *_prefixed(
        "(cloud access key)", "AKIA", "ASIA", rest=rb"[A-Z0-9]{16}", after=rb"(?![A-Za-z0-9])"
    ),
    *_prefixed("(cloud session token)", "IQoJb3JpZ2lu", "FwoGZXIvYXdz", rest=rb"[\w+/=%-]{80,}"),
    *_prefixed("(Google key)", "AIza", rest=rb"[\w-]{35}"),
    *_prefixed("(Google OAuth token)", "ya29.", rest=rb"[\w-]{20,}"),
    *_prefixed("(Google OAuth secret)", "GOCSPX-", rest=rb"[\w-]{24,}"),
    Shape("(Azure storage key)", b"accountkey=", rb"AccountKey=([A-Za-z0-9+/]{40,}={0,2})"),
    Shape("(Azure signature)", b"sig=", rb"sig=((?:[A-Za-z0-9+/]|%2[BbFf]){40,}(?:=|%3[Dd])?)"),
    Shape(
        "(Azure client secret)", b"8q~", rb"([\w.~-]{3}8Q~[\w.~-]{31,34})", rb"(?<![\w.~-])", back=3
    ),
    *_prefixed("(DigitalOcean token)", "dop_v1_", "doo_v1_", "dor_v1_", rest=rb"[0-9a-f]{64}"),
    *_prefixed("(Alibaba key)", "LTAI", rest=rb"[A-Za-z0-9]{16,20}", after=rb"(?![A-Za-z0-9])"),
    *_prefixed("(Heroku key)", "HRKU-", rest=rb"[\w-]{30,}"),
    *_prefixed("(Vault token)", "hvs.", "hvb.", "hvr.", rest=rb"[\w-]{24,}"),
    Shape("(Terraform token)", b".atlasv1.", rb"(\w{14}\.atlasv1\.[\w=-]{50,})", back=14),
    *_prefixed(
        "(Databricks token)", "dapi", rest=rb"[0-9a-f]{32}(?:-\d)?", after=rb"(?![A-Za-z0-9])"
    ),
    *_prefixed("(Tailscale key)", "tskey-", rest=rb"[A-Za-z0-9-]{20,}"),
    *_prefixed("(Pulumi token)", "pul-", rest=rb"[0-9a-f]{40}", after=rb"(?![0-9a-f])"),
    *_prefixed("(Grafana token)", "glsa_", "glc_", rest=rb"[A-Za-z0-9+/=_]{32,}"),
    *_prefixed("(New Relic key)", "NRAK-", rest=rb"[A-Z0-9]{27}"),
    *_prefixed("(Sentry token)", "sntrys_", "sntryu_", rest=rb"[\w+/=]{40,}"),
    *_prefixed("(Postman key)", "PMAK-", rest=rb"[0-9a-f]{24}-[0-9a-f]{34}"),
    *_prefixed("(1Password token)", "ops_eyJ", rest=rb"[\w-]{80,}"),
    # version control and registries
    *_prefixed(
        "(GitHub token)",
        *("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        rest=rb"[A-Za-z0-9_]{30,}",
    ),
    *_prefixed(
        "(GitLab token)",
        *("glpat-", "gldt-", "glft-", "glsoat-", "glrt-", "glcbt-", "glptt-", "glagent-", "gloas-"),
        rest=rb"[\w-]{20,}(?:\.[\w-]+)*",
    ),
    *_prefixed("(Artifactory key)", "AKC", rest=rb"[A-Za-z0-9]{60,}"),
    *_prefixed("(Atlassian token)", "ATATT3", "ATCTT3", "ATBB", rest=rb"[\w=-]{24,}"),
    *_prefixed("(PyPI token)", "pypi-AgE", rest=rb"[\w-]{50,}"),
    *_prefixed("(npm token)", "npm_", rest=rb"[A-Za-z0-9]{36}", after=rb"(?![A-Za-z0-9])"),
    *_prefixed("(Docker token)", "dckr_pat_", "dckr_oat_", rest=rb"[\w-]{20,}"),
    *_prefixed("(RubyGems key)", "rubygems_", rest=rb"[0-9a-f]{48}"),
    # chat
    *_prefixed("(Slack token)", *(f"xox{kind}-" for kind in "abepors"), rest=rb"[A-Za-z0-9-]{20,}"),
    *_prefixed("(Slack token)", "xapp-", rest=rb"\d-[A-Za-z0-9-]{20,}"),
    Shape(
        "(webhook)", b"hooks.slack.com/", rb"hooks\.slack\.com/(?:services|workflows)/([\w/]{20,})"
    ),
    Shape("(webhook)", b"/api/webhooks/", rb"/api/webhooks/\d+/([\w-]{40,})", b""),
    Shape("(webhook)", b"webhook.office.com/", rb"webhook\.office\.com/webhookb2/([\w@/.-]{40,})"),
    Shape(
        "(Telegram token)",
        b":aa",
        rb"(\d{8,10}:AA[\w-]{33})",
        rb"(?<![A-Za-z0-9_:.])",
        rb"(?![\w-])",
        back=10,
    ),
    # a bot's number in base64: digits only, so that each four characters are of few kinds
    Shape(
        "(Discord token)",
        b"",
        rb"((?:[MNO][DTjz][AEIMQUYcgk][wxyz0-5]){5,7}[\w-]{0,4}\.[\w-]{6}\.[\w-]{27,38})",
        rb"(?<![\w.-])",
        sieve="(?:[mno][dtjz][aeimquycgk][wxyz0-5]){5}",
    ),
    *_prefixed("(Matrix token)", "syt_", rest=rb"[A-Za-z0-9]+_[A-Za-z]{20}_[A-Za-z0-9]{6}"),
    # mail, money and telephones
    Shape(
        "(Twilio key)",
        b"",
        rb"((?:AC|SK)[0-9a-f]{32})",
        _WORD,
        rb"(?![A-Za-z0-9])",
        sieve="(?:ac|sk)[0-9a-f]{32}",
    ),
    *_prefixed("(Stripe key)", "sk_live_", "rk_live_", "whsec_", rest=rb"[A-Za-z0-9]{24,}"),
    *_prefixed("(Shopify token)", "shpat_", "shpss_", rest=rb"[0-9a-fA-F]{32}"),
    *_prefixed("(Linear key)", "lin_api_", rest=rb"[A-Za-z0-9]{40}"),
    *_prefixed("(Figma token)", "figd_", rest=rb"[\w-]{40}"),
    # keys, and what stands for a person on a grid
    Shape(
        "(private key)",
        b"private key",
        rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----((?s:.){16,60000}?)-----END ",
        b"",
        back=44,
    ),
    Shape(
        "(private key)",
        b"private-lines:",
        rb"(?i:private-lines): ?\d+\\{0,8}[rn\s]{1,4}([\w+/=\s\\]{20,})",
    ),
    Shape(
        "(private key)",
        b"ls0tls1crudjti",
        rb"(LS0tLS1CRUdJTi[A-Za-z0-9+/=]{80,})",
        holds=_is_packed_key,
    ),
    *_prefixed("(age key)", "AGE-SECRET-KEY-1", rest=rb"[A-Z0-9]{50,}"),
    # base64 of a length in hexadecimal and the word location, with which every macaroon begins
    Shape(
        "(macaroon)",
        b"y2f0aw9u",
        rb"(MDA\w{5}Y2F0aW9u[\w+/=-]{40,})",
        rb"(?<![\w+/])",
        back=8,
    ),
    Shape(
        "(Rucio token)",
        b"-unknown-",
        rb"([\w]{2,40}-[\w/=. @-]{2,200}?-unknown-[0-9a-f]{32})",
        back=240,
    ),
    Shape("(JSON web token)", b"eyj", rb"(eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]*)"),
    # how protocols and files of accounts carry passwords
    Shape("(bearer token)", b"bearer ", rb"(?i:bearer) ([\w.~+/-]{16,}=*)"),
    Shape(
        "(authorization header)",
        b"authorization",
        rb"(?i:authorization)\\*[\"']?\s*[:=,]\s*\\*[\"']?"
        rb"(?i:basic|bearer|token|negotiate|apikey)\s+([\w.~+/=-]{8,})",
    ),
    Shape(
        "(password in an address)",
        b"://",
        rb"://[^/\s:@\"'\\<>]{0,64}:([^/\s:@\"'\\<>]{1,128})@",
        b"",
    ),
    Shape(
        "(password of a login)",
        b"login",
        rb"(?i:\blogin\s+\S{1,128}\s+password)\s+([^\s\"'\\]{3,256})",
    ),
    Shape(
        "(password of a login)",
        b"-u",
        rb"-u[ =][\"']?[\w.@-]{1,64}:([^\s\"'\\`,)]{3,128})",
        _HYPHENED,
        holds=_is_no_word,
    ),
    Shape("(password of a login)", b"sshpass", rb"sshpass\s+-p\s*[\"']?([^\s\"'\\]{3,128})"),
    Shape(
        "(password of a database)",
        b":543",
        rb"[\w.*-]{1,128}:543\d:[\w.*-]{1,64}:[\w.*-]{1,64}:([^\s:\"'\\<>,]{5,128})",
        # `n`: of a line's end inside a JSON string
        rb"(?<![^\s\"'n,>=\x00])",
        rb"(?=[\s\"'\\<,]|$)",
        back=128,
    ),
)

_SHORT = 4096


def spans(text: bytes, parts: Sequence[Part], small: bytes) -> Iterator[Span]:
    """Start, end and label of the values that begin in these parts of a text; `small` is the text
    in small letters.
    """
    is_short = len(small) <= _SHORT
    for place, shape in enumerate(SHAPES):
        # of millions of short cells hardly any holds a stem, and this is the fastest look
        if is_short and shape.stem and shape.stem not in small:
            continue
        for match in _matches(place, text, parts, small):
            value = match.re.groups
            if shape.holds is None or shape.holds(match[value]):
                yield (*match.span(value), shape.label)


def places(block: bytes, parts: Sequence[Part], small: bytes) -> Iterator[int]:
    """Where in any bytes a value may stand: those before and after it may be of a binary format,
    and look like parts of a word.
    """
    for place in range(len(SHAPES)):
        for match in _matches(place, block, parts, small, is_binary=True):
            yield match.start()


def sieves() -> Iterator[str]:
    """In RE2's syntax, what a text in small letters holds if it holds a value of any shape."""
    return (shape.sieve or re.escape(shape.stem.decode()) for shape in SHAPES)


def hits(small: bytes, stem: bytes, parts: Iterable[Part]) -> Iterator[int]:
    """Where the stem begins in these parts."""
    for low, high in parts:
        end = high + len(stem) - 1
        at = small.find(stem, low, end)
        while at >= 0:
            yield at
            at = small.find(stem, at + 1, end)


def _matches(
    place: int, text: bytes, parts: Sequence[Part], small: bytes, *, is_binary: bool = False
) -> Iterator[re.Match[bytes]]:
    shape = SHAPES[place]
    whole = _pattern(place, is_binary)
    after = 0
    for hit in _starts(place, text, parts, small):
        if hit < after:
            continue
        match: re.Match[bytes] | None
        if shape.back:
            found = whole.finditer(text, max(hit - shape.back, after), hit + _LONGEST)
            match = next((one for one in found if one.start() <= hit < one.end()), None)
        else:
            match = whole.match(text, hit)
        if match:
            after = match.end()
            yield match


def _starts(place: int, text: bytes, parts: Sequence[Part], small: bytes) -> Iterator[int]:
    if SHAPES[place].stem:
        yield from hits(small, SHAPES[place].stem, parts)
        return
    # a pattern that begins with a set of letters is searched for fast, one with a look back is not
    core = _pattern(place, is_binary=True)
    for low, high in parts:
        for match in core.finditer(text, low, high + _LONGEST):
            if match.start() >= high:
                break
            yield match.start()


@lru_cache(maxsize=512)
def _pattern(place: int, is_binary: bool) -> re.Pattern[bytes]:
    shape = SHAPES[place]
    return re.compile(shape.core if is_binary else shape.before + shape.core + shape.after)

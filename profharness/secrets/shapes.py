"""Our own rules: values that are secret whatever their variable is called. Pure.

They are what the library of `known` lacks (model hubs, trackers, batch systems, grids), and what it
finds only in some spellings. To add one, add a line to the table: docs/secrets.md.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# not in the middle of a word; what JSON and addresses write for another character is no word
_ESCAPED = (
    rb"(?<=\\[bfnrt])|(?<=\\u00[0-9a-f]{2})|(?<=%[0-9A-Fa-f]{2})"
    # nor are the colours of a terminal
    rb"|(?<=\[\dm)|(?<=\[\d\dm)|(?<=\[\d;\d\dm)|(?<=;\d\dm)|(?<=;\d\d\dm)|(?<=;\dm)"
)
_WORD = rb"(?:(?<![A-Za-z0-9_])|" + _ESCAPED + rb")"
_HYPHENED = rb"(?:(?<![A-Za-z0-9_-])|" + _ESCAPED + rb")"
# of every value that begins with a word of its own at least so much follows it
_SOME = r"[\w+/=.%~-]{8}"


@dataclass(frozen=True)
class Shape:
    """`stem` stands in each value (or just before it) in small letters, at most `back` bytes behind
    the start of `core`; `sieve` finds, in RE2's syntax and from where the stem begins, what has no
    stem or one that many texts hold. The last group of `core` is the value, which `holds` may
    refuse. `before` and `after` tell it apart from the middle of a word. `end` ends what `core`
    matches, and is looked for first where that may lie far behind.

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
    end: bytes = b""


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
        core = b"(" + re.escape(raw) + rest + b")"
        sieve = re.escape(prefix.lower()) + _SOME
        yield Shape(label, raw.lower(), core, before, after, sieve=sieve)


SHAPES: tuple[Shape, ...] = (
    # model hubs and vendors of models
    *_prefixed("(Hugging Face token)", "hf_", "api_org_", rest=rb"[A-Za-z0-9]{30,}"),
    *_prefixed(
        "(OpenAI key)",
        *("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-"),
        rest=rb"[\w-]{20,}",
    ),
    Shape(
        "(API key)",
        b"sk-",
        rb"(sk-[A-Za-z0-9]{32,})",
        _HYPHENED,
        holds=_is_mixed,
        sieve="sk-[a-z0-9]{32}",
    ),
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
    *_prefixed(
        "(API key)",
        *("csk-", "KGAT_", "jina_", "rpa_", "tvly-", "nfp_", "sbp_", "napi_", "squ_", "sqp_"),
        rest=rb"(?=[A-Za-z]*\d)[A-Za-z0-9]{32,}",
    ),
    *_prefixed("(PlanetScale token)", "pscale_tkn_", "pscale_pw_", rest=rb"[\w.=-]{32,}"),
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
    *_prefixed("(Google refresh token)", "1//0", rest=rb"[\w-]{40,}"),
    *_prefixed(
        "(signature of an address)", "X-Amz-Signature=", "X-Goog-Signature=", rest=rb"[0-9a-f]{64,}"
    ),
    *_prefixed("(Fly.io token)", "fm1_", "fm2_", "fo1_", rest=rb"[\w+/=-]{40,}"),
    *_prefixed(
        "(Doppler token)",
        *("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        rest=rb"(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
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
    *_prefixed("(NuGet key)", "oy2", rest=rb"[a-z0-9]{43}", after=rb"(?![A-Za-z0-9])"),
    *_prefixed("(Sourcegraph token)", "sgp_", rest=rb"(?:[0-9a-f]{16}_|local_)?[0-9a-f]{40}"),
    Shape("(Azure DevOps token)", b"azdo", rb"([A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4})", back=76),
    Shape(
        "(conda token)",
        b"/t/",
        rb"/t/((?:[a-z0-9]{2}-)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/",
        b"",
        sieve="/t/(?:[a-z0-9]{2}-)?[0-9a-f]{8}-",
    ),
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
        end=b"-----END ",
    ),
    # of a log or an argument that ends within it: what follows is base64, and no text of a program
    Shape(
        "(private key)",
        b"private key",
        rb"-----BEGIN [A-Z0-9 ]{0,32}PRIVATE KEY(?: BLOCK)?-----([A-Za-z0-9+/=\s\\]{64,60000})",
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
    # encrypted, which has five parts
    Shape("(JSON web token)", b"eyj", rb"(eyJ[\w-]{8,}\.[\w-]*(?:\.[\w-]{8,}){3})"),
    *_prefixed("(munge credential)", "MUNGE:", rest=rb"[A-Za-z0-9+/]{40,}={0,2}:"),
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
        sieve=r"://[^/\s:@\"'\\<>]{0,64}:[^/\s:@\"'\\<>]{1,128}@",
    ),
    # a token in place of a name, as version control and trackers take it
    Shape(
        "(token in an address)",
        b"://",
        rb"://([\w-]{20,128})@",
        b"",
        holds=_is_mixed,
        sieve=r"://[\w-]{20,128}@",
    ),
    Shape(
        "(password of a database)", b"pwd=", rb";\s{0,8}(?i:pwd)=([^\s;\"'\\/]{3,128})", b"", back=9
    ),
    Shape(
        "(Kaggle key)",
        b"username",
        rb"username\\*\"\s*:\s*\\*\"[\w.-]{1,64}\\*\"\s*,\s*"
        rb"\\*\"key\\*\"\s*:\s*\\*\"([0-9a-f]{32})",
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
        sieve=r"-u[ =][\"']?[\w.@-]{1,64}:",
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
        sieve=":543[0-9]:",
    ),
)

"""Kinds of secrets by their shape. Stand-ins: no value opens anything.

A kind either tells itself under any name, or only by the name of its variable.
"""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass

WORD = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
BASE64 = WORD + "+/"


@dataclass(frozen=True)
class Kind:
    name: str
    variable: str
    make: Callable[[random.Random], str]
    """The text to plant; where it holds more than the secret, `secret` cuts that out."""

    secret: Callable[[str], str] = lambda text: text


def some(letters: str, length: int) -> Callable[[random.Random], str]:
    # digits and letters both, as in nearly every real one
    return lambda draw: "a1" + "".join(draw.choice(letters) for _ in range(length - 2))


def after(prefix: str, letters: str, length: int) -> Callable[[random.Random], str]:
    return lambda draw: prefix + "".join(draw.choice(letters) for _ in range(length))


def address(scheme: str, user: str = "me") -> Kind:
    return Kind(
        f"{scheme} address",
        "ENDPOINT",
        lambda draw: f"{scheme}://{user}:{some(WORD, 14)(draw)}@db.example.org/x",
        lambda text: text.rpartition("@")[0].rpartition(":")[2],
    )


def web_token(draw: random.Random) -> str:
    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    body = {"sub": some(WORD, 12)(draw), "exp": draw.randrange(10**9)}
    return f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(body)}.{some(WORD, 43)(draw)}"


def block(title: str) -> Kind:
    """A key between its lines, as files hold it."""

    def make(draw: random.Random) -> str:
        lines = "\n".join(some(BASE64, 64)(draw) for _ in range(4))
        return f"-----BEGIN {title}-----\n{lines}\n-----END {title}-----"

    return Kind(title, "NOTE", make, lambda text: text.split("\n")[2])


def discord(draw: random.Random) -> str:
    number = str(draw.randrange(10**17, 10**18))
    first = base64.b64encode(number.encode()).decode().rstrip("=")
    return f"{first}.{some(WORD, 6)(draw)}.{some(WORD, 38)(draw)}"


def macaroon(draw: random.Random) -> str:
    packets = b"0019location dcache.org\n002dsignature " + draw.randbytes(60)
    return base64.urlsafe_b64encode(packets).decode().rstrip("=")


def prefixed() -> list[Kind]:
    """Those that begin with a word of their own."""
    table = (
        ("AWS key id", "AKIA", UPPER, 16),
        ("AWS temporary key id", "ASIA", UPPER, 16),
        ("AWS session token", "IQoJb3JpZ2lu", BASE64, 300),
        ("Google key", "AIza", WORD, 35),
        ("Google OAuth token", "ya29.", WORD, 60),
        ("Google OAuth secret", "GOCSPX-", WORD, 28),
        ("DigitalOcean token", "dop_v1_", HEX, 64),
        ("Vault token", "hvs.", WORD, 90),
        ("Databricks token", "dapi", HEX, 32),
        ("Tailscale key", "tskey-auth-", WORD, 30),
        ("Pulumi token", "pul-", HEX, 40),
        ("Grafana token", "glsa_", WORD, 41),
        ("Sentry token", "sntrys_", BASE64, 80),
        ("Hugging Face token", "hf_", WORD, 34),
        ("Hugging Face organisation", "api_org_", WORD, 34),
        ("Replicate token", "r8_", WORD, 37),
        ("OpenAI project key", "sk-proj-", WORD, 48),
        ("OpenAI key", "sk-", WORD, 48),
        ("Anthropic key", "sk-ant-api03-", WORD, 93),
        ("Groq key", "gsk_", WORD, 52),
        ("Perplexity key", "pplx-", WORD, 48),
        ("NVIDIA key", "nvapi-", WORD, 64),
        ("LangSmith key", "lsv2_pt_" + "0a" * 16 + "_", HEX, 10),
        ("Neptune token", "eyJhcGlfYWRkcmVzcyI6", WORD, 120),
        ("GitHub personal token", "ghp_", WORD, 36),
        ("GitHub OAuth token", "gho_", WORD, 36),
        ("GitHub server token", "ghs_", WORD, 36),
        ("GitHub fine-grained token", "github_pat_", WORD, 82),
        ("GitLab token", "glpat-", WORD, 20),
        ("GitLab runner token", "glrt-", WORD, 20),
        ("Bitbucket password", "ATBB", WORD, 32),
        ("Atlassian token", "ATATT3", WORD, 180),
        ("PyPI token", "pypi-AgEIcHlwaS5vcmc", WORD, 150),
        ("npm token", "npm_", WORD, 36),
        ("Docker token", "dckr_pat_", WORD, 27),
        ("RubyGems key", "rubygems_", HEX, 48),
        ("Artifactory key", "AKC", WORD, 70),
        ("Slack token", "xoxb-123456789012-123456789012-", WORD, 24),
        ("Slack app token", "xapp-1-A0123-", LOWER, 64),
        ("SendGrid key", "SG." + "a1B2" * 5 + "xy.", WORD, 43),
        ("Stripe key", "sk_live_", WORD, 24),
        ("Twilio key", "SK", HEX, 32),
        ("age key", "AGE-SECRET-KEY-1", UPPER, 58),
        ("Google refresh token", "1//0", WORD, 100),
        ("Google signature", "X-Goog-Signature=", HEX, 512),
        ("AWS signature", "X-Amz-Signature=", HEX, 64),
        ("Fly.io token", "fm2_", BASE64, 120),
        ("Doppler token", "dp.pt.", WORD, 43),
        ("NuGet key", "oy2", LOWER, 43),
        ("Sourcegraph token", "sgp_" + "0a" * 8 + "_", HEX, 40),
        ("PlanetScale password", "pscale_pw_", WORD, 43),
        ("Kaggle token", "KGAT_a1", HEX, 32),
    )
    return [
        Kind(name, "ARGUMENT", after(prefix, letters, length))
        for name, prefix, letters, length in table
    ]


def named() -> list[Kind]:
    """Those that only their variable's name tells."""
    table = (
        ("AWS secret key", "AWS_SECRET_ACCESS_KEY", BASE64, 40),
        ("Azure secret", "AZURE_CLIENT_SECRET", WORD, 40),
        ("Cloudflare token", "CLOUDFLARE_API_TOKEN", WORD, 40),
        ("Weights & Biases key", "WANDB_API_KEY", HEX, 40),
        ("Comet key", "COMET_API_KEY", WORD, 25),
        ("MLflow password", "MLFLOW_TRACKING_PASSWORD", WORD, 16),
        ("ClearML key", "CLEARML_API_SECRET_KEY", WORD, 48),
        ("Gitea token", "GITEA_TOKEN", HEX, 40),
        ("PostgreSQL password", "PGPASSWORD", WORD, 12),
        ("munge key", "MUNGE_KEY", BASE64, 80),
        ("Flux certificate", "secret-key", WORD + ".-:+=^!/*?", 40),
        ("Rucio token", "RUCIO_AUTH_TOKEN", WORD, 60),
        ("Ray password", "RAY_REDIS_PASSWORD", WORD, 20),
        ("Datadog key", "DD_API_KEY", HEX, 32),
        ("Kaggle key", "KAGGLE_KEY", HEX, 32),
        ("Datadog application key", "DD_APP_KEY", HEX, 40),
        ("database password", "DB_PASS", WORD, 12),
        ("slurmdbd password", "StoragePass", WORD, 12),
    )
    return [
        Kind(name, variable, some(letters, length)) for name, variable, letters, length in table
    ]


KINDS: tuple[Kind, ...] = (
    *prefixed(),
    *named(),
    *(address(scheme) for scheme in ("https", "postgresql", "mongodb+srv", "mysql")),
    address("redis", user=""),
    Kind(
        "Azure storage",
        "CONNECTION",
        lambda draw: f"Endpoint=x;AccountKey={some(BASE64, 86)(draw)}==",
        lambda text: text.partition("AccountKey=")[2],
    ),
    Kind(
        "Azure signature",
        "LINK",
        lambda draw: f"https://x.blob.core/y?sv=2024&sig={some(WORD, 43)(draw)}%3D",
        lambda text: text.partition("sig=")[2],
    ),
    Kind(
        "Slack webhook",
        "HOOK",
        lambda draw: (
            "https://hooks.slack.com/services/"
            f"T{some(UPPER, 9)(draw)}/B{some(UPPER, 9)(draw)}/{some(WORD, 24)(draw)}"
        ),
        lambda text: text.rpartition("/")[2],
    ),
    Kind("Discord token", "ARGUMENT", discord),
    Kind(
        "Discord webhook",
        "HOOK",
        lambda draw: (
            "https://discord.com/api/webhooks/"
            f"{draw.randrange(10**17, 10**18)}/{some(WORD, 68)(draw)}"
        ),
        lambda text: text.rpartition("/")[2],
    ),
    Kind(
        "Telegram token",
        "ARGUMENT",
        lambda draw: f"{draw.randrange(10**8, 10**9)}:AA{some(WORD, 33)(draw)}",
    ),
    Kind("JSON web token", "ARGUMENT", web_token),
    Kind("Slurm token", "SLURM_JWT", web_token),
    Kind("macaroon", "ARGUMENT", macaroon),
    Kind(
        "munge credential",
        "ARGUMENT",
        lambda draw: f"MUNGE:{some(BASE64, 140)(draw)}==:",
        lambda text: text[6:146],
    ),
    Kind(
        "encrypted web token",
        "ARGUMENT",
        lambda draw: (
            web_token(draw).split(".")[0]
            + "".join(f".{some(WORD, length)(draw)}" for length in (200, 16, 80, 22))
        ),
    ),
    Kind(
        "token as a user's name",
        "REMOTE",
        lambda draw: f"https://{some(HEX, 40)(draw)}@git.example.org/me/jets.git",
        lambda text: text[8:48],
    ),
    Kind(
        "conda token",
        "CHANNEL",
        lambda draw: (
            "https://conda.anaconda.org/t/me-"
            + "-".join(some(HEX, length)(draw) for length in (8, 4, 4, 4, 12))
            + "/group/linux-64"
        ),
        lambda text: text.split("/")[4],
    ),
    Kind(
        "ODBC password",
        "CONNECTION",
        lambda draw: f"Driver=x;Server=db;Uid=me;Pwd={some(WORD, 12)(draw)};Encrypt=yes",
        lambda text: text.rpartition("Pwd=")[2].partition(";")[0],
    ),
    Kind(
        "Azure DevOps token",
        "ARGUMENT",
        lambda draw: f"{some(WORD, 76)(draw)}AZDO{some(WORD, 4)(draw)}",
    ),
    Kind(
        "basic authorization",
        "HEADER",
        lambda draw: f"Authorization: Basic {some(BASE64, 32)(draw)}",
        lambda text: text.rpartition(" ")[2],
    ),
    Kind(
        "bearer token",
        "HEADER",
        lambda draw: f"Authorization: Bearer {some(WORD, 40)(draw)}",
        lambda text: text.rpartition(" ")[2],
    ),
    Kind(
        "netrc",
        "NOTE",
        lambda draw: f"machine api.wandb.ai login user password {some(HEX, 40)(draw)}",
        lambda text: text.rpartition(" ")[2],
    ),
    Kind(
        "pgpass",
        "NOTE",
        lambda draw: f"db.example.org:5432:base:me:{some(WORD, 16)(draw)}",
        lambda text: text.rpartition(":")[2],
    ),
    block("RSA PRIVATE KEY"),
    block("OPENSSH PRIVATE KEY"),
    block("EC PRIVATE KEY"),
    block("PGP PRIVATE KEY BLOCK"),
    block("ENCRYPTED PRIVATE KEY"),
)

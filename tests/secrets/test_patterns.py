"""Which names and values are secret, and texts without them."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import detect_secrets
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from profharness.secrets import heads, known, search
from profharness.secrets.names import MARKER, STEMS, is_secret, looks_secret
from profharness.secrets.patterns import (
    clean_argv,
    clean_blocks,
    clean_text,
    clean_variables,
    secret_spans,
)

GITHUB = "ghp_" + "a1B2" * 9
HUGGING_FACE = "hf_" + "AbCd" * 8
CLOUD = "AKIA" + "ABCD2345" * 2
WEB = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl"
SECRET_NAMES = (
    "HF_TOKEN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_ACCESS_KEY_ID",
    "WANDB_API_KEY",
    "openai-api-key",
    "PGPASSWORD",
    "DB_PASSWD",
    "password",
    "clientSecret",
    "accessToken",
    "SSH_PRIVATE_KEY",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "COOKIE",
    "SLURM_JWT",
    "REGISTRY_AUTH",
    "Authorization",
    "TOKEN2",
    "MYSQL_PWD",
    "apikey",
    "SSHPASS",
    "authtoken",
    "SECRET_KEY_BASE",
    "DB_PASS",
    "storagepass",
    "StoragePass",
    "ansible_become_pass",
    "KAGGLE_KEY",
    "DD_APP_KEY",
)
OTHER_NAMES = (
    "forward_pass",
    "PASS",
    "cache_key",
    "AUTHOR",
    "GIT_AUTHOR_NAME",
    "author",
    "KEYBOARD",
    "TOKENIZERS_PARALLELISM",
    "max_tokens",
    "SSH_AUTH_SOCK",
    "XAUTHORITY",
    "PWD",
    "OLDPWD",
    "HF_TOKEN_PATH",
    "eos_token",
    "pad_token_id",
    "PROFHARNESS_PASS",
    "sort_key",
    "KEY",
    "PASSWORD_FILE",
    "token_count",
    "PATH",
    "ROCM_PATH",
    "monkey",
    "",
)


@pytest.mark.parametrize("name", SECRET_NAMES)
def test_secret_names(name: str) -> None:
    assert looks_secret(name)
    assert looks_secret(name.lower() if "_" in name else name)
    assert any(
        stem in name.lower().encode() for stem in STEMS
    )  # else no file would be searched for it


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_names_that_only_look_alike(name: str) -> None:
    assert not looks_secret(name)


@given(
    st.from_regex(
        r"[A-Za-z_]{0,6}(TOKEN|secret|Passwd|API_KEY|access-key|Cookie|AUTH|PrivateKey|"
        r"x)[A-Za-z_0-9]{0,6}",
        fullmatch=True,
    )
)
def test_every_secret_name_holds_a_stem(name: str) -> None:
    assert not looks_secret(name) or any(stem in name.lower().encode() for stem in STEMS)


def test_values_that_cannot_be_secrets_stay() -> None:
    assert is_secret("DB_PASSWORD", "x")
    assert not any(is_secret("DB_PASSWORD", value) for value in ("", "0", "True", "none", MARKER))
    assert is_secret("HF_TOKEN", "abcdefgh")
    assert not is_secret("TOKEN", "</s>")


def test_command_lines_and_environments() -> None:
    given_argv = (
        "HF_TOKEN=abcdefgh1",
        "python",
        "train.py",
        "--api-key",
        "k,1 2",
        "--token=abc def ghi",
        "--lr=0.1",
        "--password",
        "--epochs",
        "3",
        GITHUB,
        "--tokenizer=big_tokenizer",
        "--author",
        "somebody",
    )
    assert clean_argv(given_argv) == (
        f"HF_TOKEN={MARKER}",
        "python",
        "train.py",
        "--api-key",
        MARKER,
        f"--token={MARKER}",
        "--lr=0.1",
        "--password",
        "--epochs",
        "3",
        MARKER,
        "--tokenizer=big_tokenizer",
        "--author",
        "somebody",
    )
    variables = {
        "HF_TOKEN": "abcdefgh1",
        "PATH": "/bin",
        "ARGV": json.dumps(["x", "--token=abcdefgh1"]),
        "URL": "https://me:pa55@host/x",
        "PROFHARNESS_PASS": "torch-pass",
    }
    assert clean_variables(variables) == {
        "HF_TOKEN": MARKER,
        "PATH": "/bin",
        "ARGV": json.dumps(["x", f"--token={MARKER}"]),
        "URL": f"https://me:{MARKER}@host/x",
        "PROFHARNESS_PASS": "torch-pass",
    }


@pytest.mark.parametrize(
    "value", [GITHUB, HUGGING_FACE, CLOUD, WEB, "github_pat_" + "x" * 40, "glpat-" + "y" * 20]
)
def test_values_tell_themselves_under_any_name(value: str) -> None:
    found: Counter[str] = Counter()
    assert (
        clean_text(f'{{"argument": "--x {value}", "n": 1}}', found)
        == f'{{"argument": "--x {MARKER}", "n": 1}}'
    )
    assert found.total() == 1
    assert value not in str(found)


values = st.text(min_size=8, max_size=30)


@given(st.sampled_from(SECRET_NAMES), values, st.integers(0, 3), st.booleans())
def test_json_at_any_depth_of_strings_loses_exactly_the_value(
    name: str, value: str, depth: int, ascii_only: bool
) -> None:
    """A string inside strings: as an environment stands in a trace's metadata."""

    def nested(inner: str) -> str:
        text = json.dumps(
            {"before": "a=1, b", name: inner, "after": [1, "x"]}, ensure_ascii=ascii_only
        )
        for _ in range(depth):
            text = json.dumps({"environment": text, "n": 0}, ensure_ascii=ascii_only)
        return text

    found: Counter[str] = Counter()
    raw = nested(value).encode("utf-8", "surrogatepass")
    assert b"".join(clean_blocks((raw,), found)).decode() == nested(MARKER)
    assert found == {name: 1}
    assert b"".join(clean_blocks((nested(MARKER).encode(),), Counter())).decode() == nested(
        MARKER
    )  # doing it again changes nothing


@pytest.mark.slow
@settings(max_examples=15)  # each cleans 300 kB
@given(st.integers(0, 200_000), st.integers(500, 90_000))
@example(65_488, 500)
def test_blocks_cut_anywhere_give_the_same(before: int, size: int) -> None:
    filler = b'"name": "moe_align_token_kernel<int>", "ts": 12.5, ' * 4500
    text = (
        filler[:before]
        + b'"HF_TOKEN": "abcdefgh1", "x": "--token=abcdefgh2", "'
        + GITHUB.encode()
        + b'", "PASSWORD": "a\\"b"'
        + filler
    )
    found: Counter[str] = Counter()
    blocks = (text[at : at + size] for at in range(0, len(text), size))
    cleaned = b"".join(clean_blocks(blocks, found))
    mark = MARKER.encode()
    assert cleaned == (
        filler[:before]
        + b'"HF_TOKEN": "'
        + mark
        + b'", "x": "--token='
        + mark
        + b'", "'
        + mark
        + b'", "PASSWORD": "'
        + mark
        + b'"'
        + filler
    )
    assert found.total() == 4


@pytest.mark.parametrize(
    "text",
    [
        '{"--token=": "", "b": 1}',
        '["--token=", "second word"]',
        '{"cmd": "[\\"--token=\\", \\"other words\\"]"}',
        '"eos_token": "<|endoftext|>"',
        "password=",
        '"api_key": 12345678',
        '"kernel": "void sort_by_key<int>(key=1234567890)"',
        '"HF_TOKEN": "never closed',
        "PyJWT==2.3.0 and SecretStorage==3.3.1, PyJWT>=2",
        '"HF_TOKEN": "REDACTEDxxxxxxxxxxxxxxxxxxxx"',
        "HF_TOKEN=${HF_TOKEN} DB_PASSWORD=<password> --token TOKEN",
        "docker run -u 1000:1000 image; chown -u root:root",
        "use --password to be asked; password: wrong; Secret: none",
        "token=kwargs.get('x') token=self.hub_token)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::sk_kernel_0123456789>",
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_MI32x32x8x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM1_AK_ASIA",
        "disk-0123456789abcdef0123456789abcdef01 task-abcdefabcdefabcdefabcdefabcdefabcdef",
        "timezone Asia/Tokyo, https://host:8080/a@b, sha256 0123456789abcdef0123456789abcdef",
    ],
)
def test_nothing_else_is_touched(text: str) -> None:
    assert clean_text(text) == text


def test_plain_lines_of_an_environment() -> None:
    text = (
        "PATH=/bin:/usr/bin\nHF_TOKEN=abc.def-ghi/x+y\nDB_PASSWORD='two words'\n"
        'API_KEY="quoted-one"\nLANG=C\nurl?api_key=12345678&x=1\n'
    )
    assert clean_text(text) == (
        f"PATH=/bin:/usr/bin\nHF_TOKEN={MARKER}\nDB_PASSWORD='{MARKER}'\nAPI_KEY=\"{MARKER}\"\n"
        f"LANG=C\nurl?api_key={MARKER}&x=1\n"
    )


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("run --password {} --epochs 3", "password"),
        ('["run", "--api-key", "{}"]', "api-key"),
        ("['run', '--api-key', '{}']", "api-key"),
        ("run\0--api-key\0{}\0--epochs\0003\0", "api-key"),
        ("aws_secret_access_key = {}", "aws_secret_access_key"),
        ("password: {}", "password"),
        ("x-api-key: {}", "x-api-key"),
        ("DB_PASSWORD,{},3", "DB_PASSWORD"),
        ('"DB_PASSWORD","{}","3"', "DB_PASSWORD"),
        ("DB_PASSWORD\t{}", "DB_PASSWORD"),
        ("<td>DB_PASSWORD</td> <td>{}</td>", "DB_PASSWORD"),
        ("<password>{}</password>", "password"),
        ("&quot;DB_PASSWORD&quot;: &quot;{}&quot;", "DB_PASSWORD"),
        ('{{"name": "DB_PASSWORD", "value": "{}"}}', "DB_PASSWORD"),
        ('"a\\nDB_PASSWORD={}\\nb"', "DB_PASSWORD"),
        ("env:\n  - name: DB_PASSWORD\n    value: '{}'\n", "DB_PASSWORD"),
        ("machine a login b password {}", "(password of a login)"),
        ("curl -u me:{} https://host", "(password of a login)"),
        ("sshpass -p {} ssh host", "(password of a login)"),
        ("redis://:{}@host:6379/0", "(password in an address)"),
        ("db.host:5432:base:me:{}", "(password of a database)"),
        ("Authorization: Basic {}==", "(authorization header)"),
    ],
)
def test_every_spelling_of_a_name_and_its_value(text: str, label: str) -> None:
    found: Counter[str] = Counter()
    cleaned = clean_text(text.format("Tr0ub4dor+3x"), found)
    assert "Tr0ub4dor" not in cleaned
    assert found == {label: 1}
    assert clean_text(cleaned) == cleaned


def test_the_library_is_asked_for_what_our_own_rules_lack() -> None:
    found: Counter[str] = Counter()
    clean_text("key SG." + "a1B2" * 5 + "xy." + "c3D4" * 10 + "xyz", found)
    assert found == {"(SendGrid API Key)": 1}


def test_each_module_of_the_library_is_used_or_left_out_with_a_reason() -> None:
    folder = Path(detect_secrets.__file__).parent / "plugins"
    present = {file.stem for file in folder.glob("*.py")} - {"__init__", "base"}
    assert present == {plugin.module for plugin in known.PLUGINS} | set(known.NOT_ASKED)


def test_a_value_far_inside_of_a_long_text_is_found_wherever_it_lies() -> None:
    """Long texts go through a sieve in parts of 2,048 bytes, once pyarrow is loaded for it."""
    importlib.import_module("pyarrow.compute")
    token = ("nvapi-" + "Ab3_" * 16).encode()
    for at in (*range(20_000 - 20, 20_000 + 3), *range(20_480 - 80, 20_480 + 3), 2048 * 11 - 3):
        text = b" " * at + token + b" " * 9000
        assert [span[:2] for span in secret_spans(text)] == [(at, at + len(token))]


def test_the_names_of_an_ordinary_trace_do_not_load_a_library_for_tables() -> None:
    asked = """
import sys
from profharness.secrets.patterns import may_hold_secrets, secret_spans
text = b"void at::native::vectorized_elementwise_kernel<4> " * 2000
assert not may_hold_secrets(text) and not secret_spans(text)
assert secret_spans(text + b" HF_TOKEN=hf_" + b"Ab3" * 12)
assert "pyarrow" not in sys.modules
for _ in range(9):
    secret_spans(text)
assert "pyarrow" in sys.modules  # where there is much to look through, it is quicker
assert "pandas" not in sys.modules  # which would take as much memory again
"""
    subprocess.run([sys.executable, "-c", asked], check=True)


def test_a_private_key_is_found_wherever_blocks_end() -> None:
    """One line of JSON: the words before the key are parted by blanks."""
    line = "-----BEGIN RSA PRIVATE KEY-----\\n" + "MIIEow" * 40 + "\\n-----END RSA PRIVATE KEY-----"
    for ahead in range(0, 45, 2):
        # the rest of the text is what a block keeps ahead of its end
        tail = (b" y" * 40_000)[: 65_536 - len(line) + ahead]
        text = b"x, " * 30_000 + line.encode() + tail
        found: Counter[str] = Counter()
        cleaned = b"".join(clean_blocks((text,), found))
        assert b"MIIEow" not in cleaned
        assert found == {"(private key)": 1}


@pytest.mark.parametrize("colour", ["\x1b[32m", "\x1b[1;31m", "\x1b[38;5;208m", "\\u001b[33m"])
def test_a_value_behind_a_colour_of_the_terminal_is_found(colour: str) -> None:
    assert clean_text(f"using {colour}{GITHUB}\x1b[0m now") == f"using {colour}{MARKER}\x1b[0m now"


def test_a_private_key_without_its_end_is_found_and_a_word_about_one_is_not() -> None:
    lines = "\n".join(["aB3/" * 16] * 3)
    cut = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{lines}"
    assert "aB3" not in clean_text(f"read {cut}")
    assert "aB3" not in clean_text(json.dumps({"key": cut}))
    said = "if text.startswith('-----BEGIN PRIVATE KEY-----'): raise Refusal(text)"
    assert clean_text(said) == said


@pytest.mark.parametrize(
    "line",
    [
        "rank 0 10.0.0.1:5432 to 10.0.0.2:5432, login of acca, a://b, sk-, xyz:aa",
        "commit ac" + "0f" * 19 + " sk" + "1b" * 31,
    ],
)
def test_a_long_text_is_searched_a_few_times_and_not_once_per_word(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (f"{line}\n" + "plain words of a log\n" * 200).encode() * 100
    searched = 0

    class Counting:
        """A pattern that counts how much text its searches may walk over."""

        def __init__(self, place: int, is_binary: bool) -> None:
            self._pattern = pattern(place, is_binary)
            self.match = self._pattern.match

        def finditer(self, text: bytes, start: int, end: int) -> object:
            nonlocal searched
            searched += min(end, len(text)) - start
            return self._pattern.finditer(text, start, end)

    pattern = search._pattern
    monkeypatch.setattr(search, "_pattern", Counting)
    assert secret_spans(text) == []
    assert searched < 5 * len(text)


def test_options_of_a_command_line_say_more_than_names_elsewhere() -> None:
    line = "x --token hunter2 --access-token=abc12 --pass pass12 --user=al:pw1234 --login me:pw1234"
    hidden = (
        f"x --token {MARKER} --access-token={MARKER} --pass {MARKER} --user=al:{MARKER} "
        f"--login me:{MARKER}"
    )
    # the mark has blanks
    assert " ".join(clean_argv(line.split())) == hidden
    kept = (
        "x --pass inline --max-token 128 --token 65536 --eos-token s2s2s2 --pass=loops/2 "
        "token=512 --user=1000:1000 --auth basic --login node"
    )
    assert " ".join(clean_argv(kept.split())) == kept


def test_the_file_of_kaggle_loses_its_key_and_other_keys_stay() -> None:
    key = "0a1b2c3d" * 4
    assert key not in clean_text(json.dumps({"username": "me", "key": key}))
    other = json.dumps({"cache": "me", "key": key})
    assert clean_text(other) == other


@pytest.mark.parametrize("length", [70, 65_500, 65_536, 65_600, 131_000])
def test_the_end_of_a_line_of_assignments_is_found_however_long_it_is(length: int) -> None:
    value = "k9Q" * 20
    text = "TOKEN=" * (length // 6) + value + " end"
    assert value[-12:] not in clean_text(text)
    assert clean_text(text).endswith(" end")


def test_a_line_of_assignments_is_not_read_to_its_end_for_each_of_them() -> None:
    line = b"TOKEN=" * 100_000
    assert len(list(heads.spans(line, line.lower(), len(line)))) < 3_000

"""An option is declared once: the line, the help, scan files, checks and the schema derive from the
declaration.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Annotated, Literal

import msgspec
import pytest

from profharness.cli import COMMANDS
from profharness.cli.parsing.commands import OptionsOf, Settings, command_of, load
from profharness.errors import UsageError
from profharness.options.declared import (
    GENERAL,
    SCAN,
    TOPICS,
    Limit,
    Option,
    check_each,
    declared,
)
from profharness.options.recording import honouring
from profharness.options.request import Request
from profharness.options.schema import schema_of
from profharness.options.settings import COMMAND_LINE, read_settings


class WithOneMore(Request, frozen=True, kw_only=True):
    """Request with an option that is declared here and nowhere else."""

    mirror_count: Annotated[
        int,
        Option(
            "Mirrors to polish.",
            SCAN,
            common=True,
            limit=Limit(least=1, most=8, says="{} mirrors do not fit", hint="polish 1 to 8"),
        ),
    ] = 2


def polish(settings: Annotated[Settings, OptionsOf(WithOneMore)]) -> int:
    """Polish mirrors."""
    print(read_settings(WithOneMore, settings, COMMAND_LINE).mirror_count)
    return 0


def said(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    command_of("polish", polish).main(args=list(words), standalone_mode=False)
    return capsys.readouterr().out


def test_an_option_added_to_a_struct_is_an_option_everywhere(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert said(capsys, "--mirror-count", "5") == "5\n"
    assert said(capsys) == "2\n"
    assert "  --mirror-count INTEGER  Mirrors to polish.\n" in said(capsys, "--help")
    assert read_settings(WithOneMore, {"mirror_count": 3}, "s.toml").mirror_count == 3
    with pytest.raises(UsageError, match=r"^s\.toml: mirror_count: 'x' is not a whole number"):
        read_settings(WithOneMore, {"mirror_count": "x"}, "s.toml")
    with pytest.raises(UsageError, match="--mirror-count: 9 mirrors do not fit") as caught:
        read_settings(WithOneMore, {"mirror_count": 9}, "s.toml")
    assert caught.value.hint == "polish 1 to 8"
    assert schema_of(WithOneMore, "x")["properties"]["mirror_count"] == {
        "description": "Mirrors to polish.",
        "type": "integer",
        "minimum": 1,
        "maximum": 8,
        "default": 2,
    }


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_option_has_help_and_a_topic(name: str) -> None:
    command = load(name)
    for parameter in command.params:
        assert getattr(parameter, "help", ""), parameter.name
    for field in command.fields.values():
        assert field.option.help
        assert field.option.topic in (GENERAL, *TOPICS), field.name


def test_a_field_without_a_declaration_is_a_fault_of_the_program() -> None:
    class Bare(msgspec.Struct):
        depth: int = 0

    with pytest.raises(TypeError, match=r"Bare\.depth has no Option"):
        declared(Bare)


def test_lists_are_checked_value_by_value() -> None:
    class Sizes(msgspec.Struct):
        sizes: Annotated[
            tuple[int, ...], Option("Sizes.", limit=Limit(above=0, says="{} is no size", hint="x"))
        ] = ()
        order: Annotated[Literal["up", "down"], Option("Order.")] = "up"

    check_each(Sizes((1, 2)), declared(Sizes))
    with pytest.raises(UsageError, match="--sizes: 0 is no size"):
        check_each(Sizes((1, 0)), declared(Sizes))
    assert [field.choices for field in declared(Sizes)] == [(), ("up", "down")]


def test_the_layers_say_which_options_they_honour() -> None:
    assert honouring("rccl_trace") == ("rocprofv3", "rocprof-sys")
    assert honouring("pmc") == ("rocprofv3", "rocprof")
    assert honouring("kernel_include_regex") == ("rocprofv3",)
    assert honouring("rocprof_sys_mode") == ("rocprof-sys",)


def test_root_help_imports_neither_options_nor_the_parser() -> None:
    code = (
        "import sys; from profharness.cli import run_cli; run_cli(['--help']);"
        "sys.exit(bool({'typer', 'msgspec', 'profharness.options.request'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)

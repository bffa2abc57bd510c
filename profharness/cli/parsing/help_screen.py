"""The help of one command: its options by panels, or, where there are many, the common ones first
and the rest by topic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import typer.core

from profharness.errors import UsageError
from profharness.options.declared import GENERAL, TOPICS, Declared, Topic

_COMMON = "Common options"


class HelpfulCommand(typer.core.TyperCommand):
    """A command whose help is plain text under the titles of its topics.

    `fields` are its declared options by name; `topic` is the one asked for, by `--help TOPIC`.
    """

    fields: Mapping[str, Declared] = {}
    topic: Topic | None = None

    @property
    def topics(self) -> tuple[Topic, ...]:
        """The topics to ask for; none where everything fits on one screen."""
        options = [field.option for field in self.fields.values() if not field.option.argument]
        if not any(option.common for option in options):
            return ()
        asked_for = {option.topic for option in options}
        return tuple(topic for topic in TOPICS if topic in asked_for)

    def show_topic(self, word: str) -> None:
        """Make the help that of a topic. Raises UsageError for a word that names none."""
        known = {topic.word: topic for topic in self.topics}
        if word not in known:
            raise UsageError(
                f"{self.name} --help: there is no topic {word!r}",
                f"topics: {', '.join(known)}"
                if known
                else f"all options stand in `profharness {self.name} --help`",
            )
        self.topic = known[word]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """What the command is for; of a topic, what it is about."""
        if self.topic is None:
            super().format_help_text(ctx, formatter)
            return
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(f"{self.topic.title}: {self.topic.about}.")

    def format_arguments(self, ctx: Any, formatter: Any) -> None:
        """Nothing: they are listed with the options. click has a list of its own since 8.5."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options under the titles of their panels."""
        shown = [parameter for parameter in self.get_params(ctx) if self._in_screen(parameter)]
        shown.sort(key=self._place)
        for title, parameters in self._panels(shown):
            rows = [self.help_row(parameter, ctx) for parameter in parameters]
            with formatter.section(title):
                formatter.write_dl([row for row in rows if row is not None])
        if self.topics and self.topic is None:
            with formatter.section(
                f"More options, by topic (profharness {self.name} --help TOPIC)"
            ):
                formatter.write_dl([(topic.word, topic.about) for topic in self.topics])

    def _in_screen(self, parameter: Any) -> bool:
        field = self.fields.get(parameter.name)
        if self.topic is not None:
            return field is not None and field.option.topic == self.topic
        return field is None or not self.topics or field.option.common or field.option.argument

    def _place(self, parameter: Any) -> int:
        """Options by topic, those of typer itself, such as --help, at the end of the first
        screen.
        """
        field = self.fields.get(parameter.name)
        if field is None:
            return len(TOPICS) if self.topics else -1
        return TOPICS.index(field.option.topic) if field.option.topic in TOPICS else -1

    def _panels(self, parameters: Iterable[Any]) -> list[tuple[str, list[Any]]]:
        """Arguments first, what has no title of its own before what has."""
        panels: dict[str, list[Any]] = {"Arguments": [], GENERAL.title: []}
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                title = "Arguments"
            elif self.topics and self.topic is None:
                title = _COMMON
            else:
                title = getattr(parameter, "rich_help_panel", None) or GENERAL.title
            panels.setdefault(title, []).append(parameter)
        return [(title, members) for title, members in panels.items() if members]

    def help_row(self, parameter: Any, ctx: Any) -> tuple[str, str] | None:
        """The spelling of an argument or option and what it means; None for a hidden one."""
        field = self.fields.get(parameter.name)
        if field is not None and field.option.more_help is not None:
            parameter.help = field.option.help + field.option.more_help(field.name)
        row: tuple[str, str] | None = parameter.get_help_record(ctx)
        return row

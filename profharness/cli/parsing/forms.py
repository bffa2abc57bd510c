"""In which forms a command can print its answer."""

from __future__ import annotations

from enum import StrEnum


class Form(StrEnum):
    """For people, for tickets (GitHub's Markdown), for programs."""

    TABLE = "table"
    MD = "md"
    JSON = "json"


FORM_HELP = "table, md or json."
JSON_HELP = "The same as --format json."

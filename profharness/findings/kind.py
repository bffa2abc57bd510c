"""What the catalogue says of one kind of finding."""

from __future__ import annotations

from typing import Literal

import msgspec

Severity = Literal["info", "warning", "error"]


class FindingKind(msgspec.Struct, frozen=True):
    """Catalogue entry of one finding id."""

    id: str
    severity: Severity
    advice: str

"""`profharness schema`: the JSON Schema of scan files, so that editors complete and check them."""

from __future__ import annotations

import sys


def schema() -> None:
    """Print the JSON Schema of scan files, for editors that complete them.

    \b
    profharness schema > scan.schema.json
    """
    import msgspec

    from profharness.options.request import Request
    from profharness.options.schema import schema_of

    document = msgspec.json.encode(schema_of(Request, "A scan file of profharness"))
    sys.stdout.write(msgspec.json.format(document, indent=2).decode() + "\n")

"""The JSON Schema of a struct of options: what a scan file may hold, with descriptions, values and
ranges. Pure.
"""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin

import msgspec

from profharness.options.declared import Declared, Limit, declared, parts

Schema = dict[str, Any]
"""A JSON Schema, or a part of one, as JSON has it."""

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean"}


def schema_of(struct: type[msgspec.Struct], title: str) -> Schema:
    """The schema of the struct's fields as keys of one table; other keys are wrong."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "type": "object",
        "additionalProperties": False,
        "properties": {field.name: _of_field(field) for field in declared(struct)},
    }


def _of_field(field: Declared) -> Schema:
    option = field.option
    more = option.more_help(field.name) if option.more_help is not None else ""
    choices = option.choices() if callable(option.choices) else option.choices
    kinds = [_of_kind(kind, option.limit, choices) for kind in parts(field.kind)]
    if option.text is not None and option.text.schema is not None:
        kinds = [option.text.schema]
    elif option.text is not None:
        pattern = {"pattern": option.text.pattern} if option.text.pattern else {}
        kinds.append({"type": "string", **pattern})
    schema: Schema = {"description": option.help + more}
    schema |= kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    if examples := list(field.examples):
        schema["examples"] = (
            [[one] for one in examples] if isinstance(field.default, tuple) else examples
        )
    if field.default is not None and not field.required and field.default != "":
        is_list = isinstance(field.default, tuple)
        schema["default"] = list(field.default) if is_list else field.default
    return schema


def _of_kind(kind: Any, limit: Limit | None, choices: tuple[str, ...]) -> Schema:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _of_kind(arguments[0], limit, choices)}
    if origin is dict:
        return {
            "type": "object",
            "additionalProperties": _of_kind(arguments[1], limit, choices),
        }
    schema: Schema = {"type": _PLAIN[kind]}
    if choices:
        schema["enum"] = list(choices)
    return schema | (_of_limit(limit) if kind in (int, float) else {})


def _of_limit(limit: Limit | None) -> Schema:
    if limit is None:
        return {}
    bounds = {
        "minimum": limit.least,
        "exclusiveMinimum": limit.above,
        "maximum": limit.most,
    }
    return {name: bound for name, bound in bounds.items() if bound is not None}

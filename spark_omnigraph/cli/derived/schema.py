"""A JSON schema of configuration files: keys with their meaning and what they take, for editors and checks.

It accepts whatever the program accepts; what a key takes by a syntax of its own (`5%`, `90m`) is any text to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from spark_omnigraph.cli import values
from spark_omnigraph.cli.options import CONFIG, Option, Shape
from spark_omnigraph.cli.parser import PROGRAM
from spark_omnigraph.cli.verb import Verb

Json = dict[str, object]
_SCALAR: Json = {"type": ["string", "number", "boolean"]}
_PAIR = "^[^=]+="
_COUNTS: Mapping[object, int] = {values.positive: 1, values.natural: 0, values.count: 0}
"""Parsers of whole numbers, and the least of them."""
_SWITCHES = ["true", "false", "yes", "no", "1", "0", 1, 0]


def schema_text(verbs: Mapping[str, Verb]) -> str:
    """The schema as a file."""
    return json.dumps(configuration_schema(verbs), indent=2, ensure_ascii=False)


def configuration_schema(verbs: Mapping[str, Verb]) -> Json:
    """Keys of all verbs, and a section for each verb; what several verbs have alike stands once."""
    defined = _Defined()
    sections = {name: defined.refer(f"verb {name}", _section(verb, defined)) for name, verb in verbs.items()}
    shared = {key: _any([defined.of(option) for option in found]) for key, found in _by_key(verbs.values()).items()}
    both = {name: _any([sections[name], shared[name]]) for name in sections.keys() & shared.keys()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Configuration of {PROGRAM}",
        "description": "Options as keys, for one verb or with a section for each: --config FILE",
        "type": ["object", "null"],
        "properties": {**shared, **sections, **both},
        "additionalProperties": False,
        "$defs": defined.all,
    }


class _Defined:
    """Parts of the schema by name."""

    def __init__(self) -> None:
        self.all: dict[str, Json] = {}

    def of(self, option: Option) -> Json:
        """A reference to what an option takes; options of one key that differ have a name each."""
        found, number, name = _property(option), 1, option.key
        while self.all.get(name, found) != found:
            number += 1
            name = f"{option.key} {number}"
        return self.refer(name, found)

    def refer(self, name: str, part: Json) -> Json:
        """A reference to a part of this name."""
        self.all[name] = part
        return {"$ref": f"#/$defs/{name.replace(' ', '%20')}"}


def _any(references: list[Json]) -> Json:
    distinct = [each for number, each in enumerate(references) if each not in references[:number]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _by_key(verbs: Iterable[Verb]) -> dict[str, list[Option]]:
    found: dict[str, list[Option]] = {}
    for verb in verbs:
        for option in verb.all_options:
            if option.key != CONFIG.key:
                found.setdefault(option.key, []).append(option)
    return found


def _section(verb: Verb, defined: _Defined) -> Json:
    keys = {option.key: defined.of(option) for option in verb.all_options if option.key != CONFIG.key}
    return {
        "description": f"Options of {verb.name}. {verb.help}",
        "type": ["object", "null"],
        "properties": keys,
        "additionalProperties": False,
    }


def _property(option: Option) -> Json:
    found = {"description": option.help, **_taken(option)}
    if option.default is not None and option.shape is Shape.SWITCH:
        return {**found, "default": option.default == "true"}
    return found if option.default is None else {**found, "default": option.default}


def _taken(option: Option) -> Json:
    """What a key takes: texts and numbers as the flag would take them, null for nothing."""
    if option.shape is Shape.SWITCH:
        return {"anyOf": [{"type": ["boolean", "null"]}, {"enum": _SWITCHES}]}
    if option.shape is Shape.PAIRS:
        texts: Json = {"type": "string", "pattern": _PAIR}
        pairs: Json = {"type": "object", "additionalProperties": _SCALAR}
        return {"anyOf": [pairs, {"type": "array", "items": texts}, texts, {"type": "null"}]}
    one = _one(option)
    if option.shape is Shape.MANY:
        return {"anyOf": [one, {"type": "array", "items": one}, {"type": "null"}]}
    return {"anyOf": [one, {"type": "null"}]}


def _one(option: Option) -> Json:
    if option.choices:
        return {"enum": list(option.choices)}
    least = _COUNTS.get(option.parse)
    if least is not None:
        return {"anyOf": [{"type": "integer", "minimum": least}, {"type": "string", "pattern": "^[0-9]+$"}]}
    return _SCALAR

"""A configuration file as texts of options, of one verb or of several.

It is read with bounds: nothing in it can stop or crash the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.options import COMMON, CONFIG, Option, Shape
from spark_omnigraph.cli.request import Request, Source
from spark_omnigraph.cli.values import Missing, shortened
from spark_omnigraph.errors import NotFoundError, UsageError
from spark_omnigraph.words import nearest
from spark_omnigraph.yaml_text import parsed_yaml

LARGEST = 64 << 10
"""Bytes of a configuration file; YAML is read slowly."""
_INTEGER_BITS = 4096
NAMED = 20
"""Unknown keys that are named."""
APART = frozenset({"confirm", "force", "name"})
"""Keys that a file of several verbs holds in sections alone: `force` of `init` drops a graph, that of `repair` none."""


def options_of_file(path: str, request: Request, problems: list[str]) -> list[Source]:
    """Options of a configuration file: those of the section of the verb, if there is one, then the common ones.

    Outside of sections, keys of other verbs are passed over, so that verbs can share a file. In a file of
    several verbs, the keys of `APART` stand in sections alone. What is wrong is added to `problems`.
    """
    try:
        content = read_yaml("--config", path)
    except NotFoundError as error:
        problems.append(Missing(error.message))
        return []
    except UsageError as error:
        problems.append(error.message)
        return []
    of_all = {**request.of_all, request.verb: request.options}
    decided = dict.fromkeys(request.fixed, f"; {request.verb} is what decides it: leave it out")
    sections = {name: value for name, value in content.items() if name in of_all and _is_section(name, value, of_all)}
    shared = {key: value for key, value in content.items() if key not in sections}
    known = {option.key for options in (COMMON, *of_all.values()) for option in options} - {CONFIG.key}
    near = (*known, *of_all)
    _name_unknown([key for key in shared if key not in known], near, path, (request.verb, request.options), problems)
    foreign = shared.keys() & known - {option.key for option in (*COMMON, *request.options)}
    if sections or foreign:
        apart = sorted(APART & shared.keys())
        problems += [f"'{key}' in {path} is not for all verbs: put it into a section of a verb" for key in apart]
    for name, section in sections.items():
        keys = {option.key for option in of_all[name]} - {CONFIG.key}
        if isinstance(section, dict):
            unknown = [key for key in section if key not in keys]
            hints = decided if name == request.verb else {}
            _name_unknown(unknown, keys, _section(name, path), (name, of_all[name]), problems, hints)
        elif section is not None:
            problems.append(f"{_section(name, path)} must hold keys and values")
    own = sections.get(request.verb)
    found = [Source(path, _given(shared, request.options, path, problems))]
    if isinstance(own, dict):
        where = _section(request.verb, path)
        found.insert(0, Source(where, _given(own, request.options, where, problems)))
    return found


def _is_section(name: str, value: object, of_all: Mapping[str, tuple[Option, ...]]) -> bool:
    """Whether a key is a section: `index` is the name of a verb, and of an option where a switch stands behind it."""
    is_key = any(option.key == name for options in of_all.values() for option in options)
    return not is_key or isinstance(value, dict)


def _section(name: str, path: str) -> str:
    return f"section '{name}' of {path}"


def _name_unknown(
    unknown: Sequence[str],
    near: Iterable[str],
    where: str,
    verb: tuple[str, Sequence[Option]],
    problems: list[str],
    hints: Mapping[str, str] | None = None,
) -> None:
    """Names unknown keys, with what is known about them or the nearest known ones, and last the keys of a verb."""
    near = list(near)
    for key in map(shortened, unknown[:NAMED]):
        problems.append(f"unknown key '{key}' in {where}{(hints or {}).get(key) or nearest(key, near)}")
    if unknown:
        name, options = verb
        keys = ", ".join(sorted(option.key for option in options if option is not CONFIG))
        more = f"; {len(unknown) - NAMED} more keys are unknown" if len(unknown) > NAMED else ""
        problems[-1] += f" (keys of {name}: {keys}){more}"


def _given(
    content: Mapping[str, object], options: Sequence[Option], where: str, problems: list[str]
) -> dict[str, list[str]]:
    known = {option.key: option for option in options if option is not CONFIG}
    return {
        key: _texts(known[key], value, where, problems)
        for key, value in content.items()
        if key in known and value is not None and value != []
    }


def read_yaml(option: str, path: str) -> Mapping[str, object]:
    """Keys and values of a file that an option names. UsageError when it cannot be read, or is no such."""
    text = read_text(option, path, LARGEST)
    try:
        content = parsed_yaml(text)
    except ValueError as error:
        raise UsageError(f"{option}: '{path}' {error}") from None
    found = {} if content is None else content
    if isinstance(found, dict):
        return _with_texts_as_keys(found)
    raise UsageError(f"{option}: '{path}' must hold keys and values")


def _with_texts_as_keys(content: Mapping[object, object]) -> dict[str, object]:
    """Keys as texts, down to those of a section."""
    return {
        _scalar(key) or str(key): _with_texts_as_keys(value) if isinstance(value, dict) else value
        for key, value in content.items()
    }


def _texts(option: Option, value: object, path: str, problems: list[str]) -> list[str]:
    """Texts of a YAML value, as if they had been arguments."""
    if option.shape is Shape.PAIRS and isinstance(value, dict):
        return [f"{_scalar(key)}={_scalar(item)}" for key, item in value.items()]
    items = value if isinstance(value, list) and option.shape in (Shape.MANY, Shape.PAIRS) else [value]
    texts = [text for item in items if (text := _scalar(item)) is not None]
    if len(texts) < len(items):
        expected = {Shape.MANY: "a value or a list of values", Shape.PAIRS: "keys and values"}
        problems.append(f"'{option.key}' in {path} must be {expected.get(option.shape, 'a single value')}")
        return []
    return texts


def _scalar(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and value.bit_length() > _INTEGER_BITS:
        return hex(value)  # more decimal digits than Python writes; no option takes it either way
    if isinstance(value, (str, int, float)):
        return str(value)
    # YAML reads an unquoted 2026-01-31 as a date.
    return None if isinstance(value, (list, dict)) or value is None else str(value)

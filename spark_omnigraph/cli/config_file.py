"""A configuration file as texts of options. It is read with bounds: nothing in it can stop or crash the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import yaml

from spark_omnigraph.cli.files import read_text
from spark_omnigraph.cli.options import COMMON, CONFIG, Option, Shape
from spark_omnigraph.cli.values import shortened
from spark_omnigraph.errors import UsageError
from spark_omnigraph.words import nearest

LARGEST = 64 << 10
"""Bytes of a configuration file; YAML is read slowly."""
DEEPEST = 16
MOST_ALIASES = 32
_INTEGER_BITS = 4096
NAMED = 20
"""Unknown keys that are named."""


class _Bounded(yaml.SafeLoader):
    """Refuses what grows when it is read: deep nesting, and references to references."""

    _depth = 0
    _aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        self._aliases += self.check_event(yaml.AliasEvent)
        self._depth += 1
        if self._depth > DEEPEST or self._aliases > MOST_ALIASES:
            what = "nested too deeply" if self._depth > DEEPEST else "too many references (*name)"
            raise yaml.MarkedYAMLError(problem=what, problem_mark=parent.start_mark if parent is not None else None)
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def options_of_file(path: str, verb: str, options: Sequence[Option], problems: list[str]) -> dict[str, list[str]]:
    """Options of a configuration file. Common keys may stand there for other verbs; other keys must be this verb's.

    What is wrong with the file is added to `problems`.
    """
    try:
        content = _content(path)
    except UsageError as error:
        problems.append(error.message)
        return {}
    known = {option.key: option for option in (*COMMON, *options) if option is not CONFIG}
    unknown = [shortened(key) for key in content if key not in known]
    for key in unknown[:NAMED]:
        problems.append(f"unknown key '{key}' in {path}{nearest(key, known)}")
    if unknown:
        more = f"; {len(unknown) - NAMED} more keys are unknown" if len(unknown) > NAMED else ""
        problems[-1] += f" (keys of {verb}: {', '.join(sorted(known))}){more}"
    given = {}
    for key, value in content.items():
        if key in known and value is not None and value != []:
            given[key] = _texts(known[key], value, path, problems)
    return given


def _content(path: str) -> Mapping[str, object]:
    """Keys and values of a file. UsageError when it cannot be read, or is no such."""
    text = read_text("--config", path, LARGEST)
    try:
        content = yaml.load(text, _Bounded)
        found = {} if content is None else content
        if isinstance(found, dict):
            return {_scalar(key) or str(key): value for key, value in found.items()}
    except yaml.MarkedYAMLError as error:
        # Only the place: the text around it may hold what nobody else should see.
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise UsageError(f"--config: '{path}' is not YAML: {error.problem or error.context}{place}") from None
    except yaml.YAMLError as error:
        raise UsageError(f"--config: '{path}' is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, OverflowError) as error:
        raise UsageError(f"--config: '{path}' has a number or a date that cannot be: {error}; quote a text") from None
    raise UsageError(f"--config: '{path}' must hold keys and values")


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

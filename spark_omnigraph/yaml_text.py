"""YAML that a user gives, read with bounds: nothing in it can stop or crash the program."""

from __future__ import annotations

from collections.abc import Hashable

import yaml

from spark_omnigraph.redaction import excerpt

DEEPEST = 16
MOST_ALIASES = 32


def parsed_yaml(text: str) -> object:
    """The value of a text. ValueError says what it is instead of YAML, and where."""
    try:
        found: object = yaml.load(text, _Bounded)
    except yaml.MarkedYAMLError as error:
        # Only the place: the text around it may hold what nobody else should see.
        mark = error.problem_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
        raise ValueError(f"is not YAML: {error.problem or error.context}{place}") from None
    except yaml.YAMLError as error:
        raise ValueError(f"is not YAML: {' '.join(str(error).split())}") from None
    except (ValueError, OverflowError) as error:
        raise ValueError(f"has a number or a date that cannot be: {error}; quote a text") from None
    return found


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

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, object]:
        """Refuses a key that stands twice: YAML would take the last without a word."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                what = f"the key '{excerpt(key.value)}' stands twice"
                raise yaml.MarkedYAMLError(problem=what, problem_mark=key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        found: dict[Hashable, object] = super().construct_mapping(node, deep=deep)
        return found

"""The page of the Python API, made from signatures and docstrings."""

from __future__ import annotations

import enum
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass

import spark_omnigraph
from spark_omnigraph.errors import OmnigraphError

HEAD = """# Python API

Made from the code: every name that `from spark_omnigraph import …` knows, what it takes, and what its docstring says.
Errors stand in [errors.md](errors.md), options of the data source in [spark-read.md](spark-read.md) and
[spark-write.md](spark-write.md).
"""
GROUPS = (
    ("Graph", ("graph.handle",)),
    ("Spark", ("spark.",)),
    ("Loads", ("graph.load", "records.", "progress.", "write.executor", "bad_rows")),
    ("Queries and SQL", ("engine.", "sql.", "lang.gq", "graph.read.sql", "graph.mutate")),
    ("Branches and states", ("branch.", "graph.merge", "graph.restore", "graph.changes", "graph.read.history")),
    ("Schemas", ("catalog.", "graph.schema", "lang.pg", "graph.profile")),
    ("Embeddings", ("embed.", "graph.embed", "graph.provider")),
    ("Upkeep", ("graph.maintain", "graph.delete", "graph.export", "write.indexes")),
    ("What a graph shows of itself", ("graph.read", "manifest.", "draw.", "storage.", "commit.")),
)
"""Headings of the page, and the beginnings of the modules whose names stand there; the first that fits has them."""


_STARS = {"VAR_KEYWORD": "**", "VAR_POSITIONAL": "*"}


def api_page() -> str:
    """The page."""
    groups: dict[str, list[str]] = {title: [] for title, _ in GROUPS}
    errors = []
    for name in spark_omnigraph.__all__:
        value = getattr(spark_omnigraph, name)
        if isinstance(value, type) and issubclass(value, OmnigraphError):
            errors.append(f"`{name}`")
            continue
        home = spark_omnigraph._HOME_OF[name]
        (title, *_) = [title for title, homes in GROUPS if home.startswith(homes)] or ["What a graph shows of itself"]
        groups[title].append("\n".join(_entry(name, value)))
    sections = [f"## {title}\n\n" + "\n\n".join(found) for title, found in groups.items() if found]
    return "\n\n".join([HEAD.strip(), *sections, f"## Errors\n\n{', '.join(errors)}"]) + "\n"


def _entry(name: str, value: object) -> Iterator[str]:
    yield f"### `{name}`"
    if inspect.isfunction(value):
        yield f"\n```python\n{_signature(name, value)}\n```"
    yield f"\n{_doc(value)}"
    if not isinstance(value, type):
        return
    if issubclass(value, enum.Enum):
        yield "\n" + ", ".join(f"`{member.value}`" for member in value)
    elif is_dataclass(value):
        yield "\n" + ", ".join(f"`{each.name}: {_typed(each.type)}`" for each in fields(value) if each.name[0] != "_")
    elif issubclass(value, dict):
        yield "\n" + ", ".join(f"`{key}: {_typed(kind)}`" for key, kind in value.__annotations__.items())
    for member in _methods(value):
        yield f"\n```python\n{_signature(f'{name}.{member.__name__}', member)}\n```\n\n{_doc(member)}"


def _methods(kind: type) -> Iterator[Callable[..., object]]:
    """Public methods of ours, those of its bases too, in the order of their names."""
    for name in sorted(dir(kind)):
        found = inspect.getattr_static(kind, name)
        found = found.__func__ if isinstance(found, (classmethod, staticmethod)) else found
        module = getattr(found, "__module__", None) or ""
        if not name.startswith("_") and inspect.isfunction(found) and module.startswith("spark_omnigraph"):
            yield found


_SESSION = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


def _doc(value: object) -> str:
    text = inspect.getdoc(value) or ""
    text = "" if text.startswith("dict() ->") else text
    return _SESSION.sub(lambda found: f"```python\n{found.group()}\n\n```", text)


def _signature(name: str, function: Callable[..., object]) -> str:
    """In one line where it fits, else one for each parameter."""
    signature = inspect.signature(function)
    parts, is_named = [], False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not is_named:
            parts.append("*")
            is_named = True
        is_named |= each.kind is inspect.Parameter.VAR_POSITIONAL
        parts.append(_parameter(each))
    end = "" if signature.return_annotation is inspect.Signature.empty else f" -> {_typed(signature.return_annotation)}"
    line = f"{name}({', '.join(parts)}){end}"
    return line if len(line) <= 110 else f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){end}"


def _parameter(each: inspect.Parameter) -> str:
    stars = _STARS.get(each.kind.name, "")
    kind = "" if each.annotation is inspect.Parameter.empty else f": {_typed(each.annotation)}"
    if each.default is inspect.Parameter.empty:
        return f"{stars}{each.name}{kind}"
    default = str(each.default) if isinstance(each.default, enum.Enum) else repr(each.default)
    shown = f'"{default}"' if isinstance(each.default, enum.Enum) else default.replace("'", '"')
    return f"{each.name}{kind}{' = ' if kind else '='}{shown}"


def _typed(annotation: object) -> str:
    """As it stands in the source; annotations are texts here, or references that hold one."""
    annotation = getattr(annotation, "__forward_arg__", annotation)
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))

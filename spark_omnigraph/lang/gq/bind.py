"""Parameters of a plan or a mutation → their values, and texts that are looked for by meaning → vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from operator import is_
from typing import Any, TypeVar, cast

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.plan import Constant, Nearest, Parameter, Value

Part = TypeVar("Part")


def bind(part: Part, values: Mapping[str, Value]) -> Part:
    """A plan, statement or any piece of one with every `Parameter` replaced by a `Constant`. `values` has them all."""

    def bound(one: object) -> object:
        return Constant(values[one.name], one.type) if isinstance(one, Parameter) else one

    return cast(Part, _rebuilt(part, bound))


def bind_texts(part: Part, vector: Callable[[Nearest, str], tuple[float, ...]]) -> Part:
    """A bound plan whose `nearest` look for vectors alone: `vector` gives that of each text, asked for once."""
    found: dict[tuple[str | None, int | None, str], Constant] = {}

    def bound(one: object) -> object:
        if not isinstance(one, Nearest) or not isinstance(one.query, Constant) or not isinstance(one.query.value, str):
            return one
        text, dimension = one.query.value, one.column.type.dimension
        key = (one.model, dimension, text)
        if key not in found:
            found[key] = Constant(vector(one, text), PropType(Scalar.VECTOR, dimension=dimension))
        return replace(one, query=found[key])

    return cast(Part, _rebuilt(part, bound))


def _rebuilt(part: object, change: Callable[[object], object]) -> object:
    """What a change makes of a piece, or else the piece with its own pieces changed; itself where none is."""
    if isinstance(part, tuple):
        made = tuple([_rebuilt(one, change) for one in part])
        return part if all(map(is_, made, part)) else made
    kind: Any = type(part)
    names = _pieces(kind)
    if names is None:
        return {key: _rebuilt(one, change) for key, one in cast(Mapping[object, object], part).items()}
    if not names:
        return part
    changed = change(part)
    if changed is not part:
        return changed
    # `replace` is typed for one dataclass at a time; here it is whichever the plan holds.
    pieces: dict[str, Any] = {}
    for name in names:
        old = getattr(part, name)
        new = _rebuilt(old, change)
        if new is not old:
            pieces[name] = new
    return replace(cast(Any, part), **pieces) if pieces else part


@cache
def _pieces(kind: type) -> tuple[str, ...] | None:
    """Names of the pieces of a dataclass, None of a mapping; nothing changes in a type of values."""
    if issubclass(kind, Mapping):
        return None
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) and kind is not PropType else ()

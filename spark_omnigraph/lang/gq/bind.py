"""Parameters of a plan or a mutation → their values, and texts that are looked for by meaning → vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from spark_omnigraph.catalog.types import PropType, Scalar
from spark_omnigraph.lang.gq.plan import Constant, Nearest, Parameter, Value

Part = TypeVar("Part")
Rebuild = Callable[[Callable[[Any], object]], Any]
"""Makes a part anew with what is given instead of each of its pieces of one kind."""


def binder(part: Part) -> Callable[[Mapping[str, Value]], Part]:
    """What makes a plan, statement or any piece of one with every `Parameter` replaced by a `Constant`, from values,
    which have them all.
    """
    rebuild = rebuilder(part, Parameter)

    def bound(values: Mapping[str, Value]) -> Part:
        return part if rebuild is None else rebuild(lambda one: Constant(values[one.name], one.type))

    return bound


def bind(part: Part, values: Mapping[str, Value]) -> Part:
    """As `binder`, for who binds a part once."""
    return binder(part)(values)


def bind_texts(part: Part, vector: Callable[[Nearest, str], tuple[float, ...]]) -> Part:
    """A bound plan whose `nearest` look for vectors alone: `vector` gives that of each text, asked for once."""
    found: dict[tuple[str | None, int | None, str], Constant] = {}

    def bound(one: Nearest) -> Nearest:
        if not isinstance(one.query, Constant) or not isinstance(one.query.value, str):
            return one
        text, dimension = one.query.value, one.column.type.dimension
        key = (one.model, dimension, text)
        if key not in found:
            found[key] = Constant(vector(one, text), PropType(Scalar.VECTOR, dimension=dimension))
        return replace(one, query=found[key])

    rebuild = rebuilder(part, Nearest)
    return part if rebuild is None else rebuild(bound)


def rebuilder(part: object, kind: type) -> Rebuild | None:
    """How a part is made anew with other pieces of a kind; None where it has none. They are looked for once here, since
    that takes longer than to change them.
    """
    if isinstance(part, kind):
        return lambda change: change(part)
    pieces = ((place, rebuilder(piece, kind)) for place, piece in _pieces(part).items())
    changed = {place: rebuild for place, rebuild in pieces if rebuild is not None}
    if not changed:
        return None
    if isinstance(part, tuple):
        return lambda change: tuple([changed[n](change) if n in changed else one for n, one in enumerate(part)])
    if isinstance(part, Mapping):
        return lambda change: {**part, **{key: rebuild(change) for key, rebuild in changed.items()}}
    whole: Any = part  # `replace` is typed for one dataclass at a time; here it is whichever the plan holds
    return lambda change: replace(whole, **{name: rebuild(change) for name, rebuild in changed.items()})


def _pieces(part: object) -> Mapping[Any, object]:
    """The pieces of a tuple, a mapping or a dataclass by their places; values, and their types, have none."""
    if isinstance(part, tuple):
        return dict(enumerate(part))
    if isinstance(part, Mapping):
        return part
    if not is_dataclass(part) or isinstance(part, PropType):
        return {}
    return {each.name: getattr(part, each.name) for each in fields(part)}

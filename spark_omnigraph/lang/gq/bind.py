"""Parameters of a plan or a mutation → their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

from spark_omnigraph.lang.gq.plan import Constant, Parameter, Value

Part = TypeVar("Part")


def bind(part: Part, values: Mapping[str, Value]) -> Part:
    """A plan, statement or any piece of one with every `Parameter` replaced by a `Constant`. `values` has them all."""
    return cast(Part, _bound(part, values))


def _bound(part: object, values: Mapping[str, Value]) -> object:
    if isinstance(part, Parameter):
        return Constant(values[part.name], part.type)
    if isinstance(part, tuple):
        return tuple(_bound(one, values) for one in part)
    if isinstance(part, Mapping):
        return {key: _bound(one, values) for key, one in part.items()}
    if not is_dataclass(part) or isinstance(part, type):
        return part
    # `replace` is typed for one dataclass at a time; here it is whichever the plan holds.
    changed: dict[str, Any] = {}
    for each in fields(part):
        old = getattr(part, each.name)
        new = _bound(old, values)
        if new is not old:
            changed[each.name] = new
    return replace(part, **changed) if changed else part

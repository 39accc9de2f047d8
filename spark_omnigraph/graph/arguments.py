"""Arguments of public calls, checked by their names: whatever is of another kind is refused before anything is done."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping, Set
from contextlib import suppress
from functools import partial, wraps
from types import FunctionType
from typing import ParamSpec, TypeVar

from spark_omnigraph.errors import BadRequestError
from spark_omnigraph.redaction import as_shown
from spark_omnigraph.words import nearest

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")
Kind = tuple[Callable[[object], bool], str]
"""What a value must be, and the words for it."""


def _is(kind: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, kind)


def _is_whole(value: object) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def _is_names(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, (str, bytes)) and all(map(_is(str), value))


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for pair in value.items() for text in pair)


def _is_path(value: object) -> bool:
    return isinstance(value, (str, os.PathLike))


def _is_executor(value: object) -> bool:
    return callable(getattr(value, "map", None)) and hasattr(value, "parallelism")


TEXT: Kind = (_is(str), "a text")
SWITCH: Kind = (_is(bool), "True or False")
WHOLE: Kind = (_is_whole, "a whole number")
NAMES: Kind = (_is_names, "a list of names such as ['…']")
TEXTS: Kind = (_is_texts, "a dictionary of texts")
EXECUTOR: Kind = (_is_executor, "an executor, such as LocalExecutor(4) or SparkExecutor(spark)")
PATH: Kind = (_is_path, "a path")
CALLABLE: Kind = (callable, "a function")
_KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("branch", "base", "actor", "table", "mode"), TEXT),
    **dict.fromkeys(("confirm", "dry_run", "allow_data_loss", "rewind_apps"), SWITCH),
    **dict.fromkeys(("no_cache", "adopt", "csv_single_line"), SWITCH),
    "limit": WHOLE,
}
"""Of arguments that mean the same in every call, also where they come as `**`."""


def instance_of(kind: type) -> Kind:
    """The kind of what is of a class of this package."""
    return _is(kind), f"of the class {kind.__name__}"


def require(name: str, value: object, kind: Kind) -> None:
    """BadRequestError that names the argument when its value is of another kind."""
    fits, words = kind
    if not fits(value):
        raise BadRequestError(f"{name} is {words}, not {as_shown(value)}")


def require_known(choices: Mapping[str, object], known: type, what: str) -> None:
    """BadRequestError for a choice that a class of choices does not have; `what` takes them."""
    unknown = choices.keys() - known.__annotations__.keys()
    if unknown:
        name = min(unknown)
        raise BadRequestError(f"{what} takes no '{name}'{nearest(name, known.__annotations__)}")


def checked_call(**kinds: Kind) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """As `checked`, of one function."""
    return partial(_checking, known={**_KINDS, **kinds})


def checked(reads: Set[str] = frozenset(), **kinds: Kind) -> Callable[[type[C]], type[C]]:
    """A decorator of a class of handles: public methods check arguments of these names, and of the common ones, also
    among those that come as `**`; what is True or False by default is a switch. What may be left out may be None.

    Methods whose names are not among `reads` change a graph, or say what a change would do: where its format is only
    read, they are refused before anything else.
    """
    known = {**_KINDS, **kinds}

    def decorate(cls: type[C]) -> type[C]:
        for name, member in list(vars(cls).items()):
            function = getattr(member, "__func__", member)
            if not name.startswith("_") and isinstance(function, FunctionType):
                writes = not isinstance(member, classmethod) and name not in reads
                made: object = _checking(_writing(function) if writes else function, known)
                setattr(cls, name, classmethod(made) if isinstance(member, classmethod) else made)  # type: ignore[arg-type]  # a function
        return cls

    return decorate


def _writing(function: Callable[P, R]) -> Callable[P, R]:
    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        args[0].store.require_writable()  # type: ignore[attr-defined]  # it is a method of a handle
        return function(*args, **kwargs)

    return call


def _checking(function: Callable[P, R], known: Mapping[str, Kind]) -> Callable[P, R]:
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    places = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    needed = {each.name for each in parameters if each.default is not None}
    switches = (each.name for each in parameters if isinstance(each.default, bool))
    kinds = {**known, **dict.fromkeys(switches, SWITCH)}

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for name, value in (*zip(places, args), *kwargs.items()):
            kind = kinds.get(name)
            if kind is not None and (value is not None or name in needed) and not kind[0](value):
                with suppress(TypeError):  # of what no such function takes, which the call says with its name
                    signature.bind(*args, **kwargs)
                    require(name, value, kind)
        return function(*args, **kwargs)

    return call

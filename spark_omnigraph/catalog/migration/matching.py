"""Which accepted element a desired one is: by its name, else by `@rename_from`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from spark_omnigraph.catalog.types import Annotation


class Element(Protocol):
    """A type or a property."""

    @property
    def name(self) -> str: ...

    @property
    def annotations(self) -> tuple[Annotation, ...]: ...


E = TypeVar("E", bound=Element)


@dataclass(frozen=True, slots=True)
class Match(Generic[E]):
    """A desired element, and the accepted one that it is: None for a new one. `refusal` says why nobody can tell."""

    new: E
    old: E | None
    refusal: str | None = None

    @property
    def is_rename(self) -> bool:
        return self.old is not None and self.old.name != self.new.name


def pair_by_name(what: str, accepted: Mapping[str, E], desired: Mapping[str, E], owner: str = "") -> list[Match[E]]:
    """One match for each desired element, in their order. `what` and `owner` are for the texts: `node`, or `property`
    and `T.`.

    A rename from a name that stays, from one that is taken by another rename, or into a name that was there already is
    refused, for nobody can tell which element keeps the values; a marker that has done its work is passed over.
    """
    taken: dict[str, str] = {}
    return [_match(f"{what} '{owner}{new.name}'", what, new, accepted, desired, taken) for new in desired.values()]


def leftover(accepted: Mapping[str, E], matches: Sequence[Match[E]]) -> list[E]:
    """The accepted elements that are gone, in name order."""
    kept = {found.old.name for found in matches if found.old is not None}
    return [old for old in accepted.values() if old.name not in kept]


def _match(
    place: str, what: str, new: E, accepted: Mapping[str, E], desired: Collection[str], taken: dict[str, str]
) -> Match[E]:
    source = rename_source(new)
    old = accepted.get(new.name)
    if old is not None:
        ignored = source in accepted and source not in (new.name, rename_source(old))
        why = f"{place} cannot be renamed from '{source}': '{new.name}' exists; rename it away in an apply of its own"
        return Match(new, old, why if ignored else None)
    if source is None:
        return Match(new, None)
    old = accepted.get(source)
    if old is None:
        why = f'{place} declares @rename_from("{source}") but no accepted {what} with that name exists'
        return Match(new, None, why)
    if source in desired:
        return Match(new, None, f"{place} is renamed from '{source}', but '{source}' is still declared")
    first = taken.setdefault(source, new.name)
    if first != new.name:
        return Match(
            new, None, f"{place} is renamed from '{source}', and so is '{first}'; one of them can keep its values"
        )
    return Match(new, old)


def rename_source(element: Element) -> str | None:
    """The name in `@rename_from`."""
    return next((each.value for each in element.annotations if each.name == "rename_from"), None)

"""Differences of annotations: descriptions may change, what has an effect may not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from spark_omnigraph.catalog.migration.steps import SchemaStep, Unsupported
from spark_omnigraph.catalog.types import Annotation

_DESCRIBING = frozenset({"description", "instruction"})
_ELSEWHERE = frozenset({"rename_from", "key", "unique", "index"})
"""Seen by the matching of names and among the constraints."""
_SOURCE_IN = "embed"
"""The annotation whose value is the name of a property."""


def metadata_step(
    old: Iterable[Annotation],
    new: Iterable[Annotation],
    renames: Mapping[str, str],
    update: Callable[[tuple[Annotation, ...]], SchemaStep],
    refuse: Callable[[str], Unsupported],
) -> Iterator[SchemaStep]:
    """The step between two lists of annotations, if they differ: the new descriptions, all of them, or a refusal.

    An annotation that names a property follows it when it is renamed.
    """
    before, after = [_renamed(each, renames) for each in old], list(new)
    if _others(before) != _others(after):
        yield refuse("changing annotations beyond @description/@instruction")
    if _describing(before) != _describing(after):
        yield update(_describing(after))


def _renamed(annotation: Annotation, renames: Mapping[str, str]) -> Annotation:
    if annotation.name != _SOURCE_IN or annotation.value is None:
        return annotation
    return replace(annotation, value=renames.get(annotation.value, annotation.value))


def _others(annotations: Iterable[Annotation]) -> list[Annotation]:
    return [each for each in annotations if each.name not in _DESCRIBING | _ELSEWHERE]


def _describing(annotations: Iterable[Annotation]) -> tuple[Annotation, ...]:
    return tuple(each for each in annotations if each.name in _DESCRIBING)

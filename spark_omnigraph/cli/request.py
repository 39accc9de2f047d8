"""What the configuration of a job is made from: the options of its verb, and the places that give them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_omnigraph.cli.options import Option

Given = Mapping[str, list[str]]
"""Texts of the options that one source gives, by key."""


@dataclass(frozen=True, slots=True)
class Source:
    """One place that gives options, and what messages call it."""

    label: str
    given: Given


@dataclass(frozen=True, slots=True)
class Request:
    """What a verb's options are: those it takes, and those it decides itself."""

    verb: str
    options: tuple[Option, ...]
    fixed: Mapping[str, str]
    of_all: Mapping[str, tuple[Option, ...]] = field(default_factory=dict)
    """The options of every verb, by its name: a configuration file may serve several verbs."""

"""What an interrupted write did to its tables, and what recovery does about it: tables of data, no I/O.

The rows are those of the storage format, sections 6.3 to 6.5; the first row that fits counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from spark_omnigraph.commit.plan import WriterKind


class Mode(Enum):
    """How exactly a writer's HEAD movement is known beforehand."""

    STRICT = "strict"
    """One commit per table: HEAD is the pin or the pin + 1."""
    LOOSE = "loose"
    """Any number of commits that change no data: further is finished too."""
    CONFIRMED = "confirmed"
    """Several commits per table, finished only when the sidecar says so."""


MODES: dict[str, Mode] = {
    WriterKind.MUTATION: Mode.STRICT,
    WriterKind.LOAD: Mode.STRICT,
    WriterKind.SCHEMA_APPLY: Mode.LOOSE,
    WriterKind.ENSURE_INDICES: Mode.LOOSE,
    WriterKind.OPTIMIZE: Mode.LOOSE,
    WriterKind.BRANCH_MERGE: Mode.CONFIRMED,
}
CONFIRMED_SINCE = 2
"""Sidecar version from which branch merges confirm their versions."""


class PinClass(Enum):
    """Where one table of an interrupted write stands."""

    INVARIANT_VIOLATION = "InvariantViolation"
    NO_MOVEMENT = "NoMovement"
    ROLLED_PAST_EXPECTED = "RolledPastExpected"
    UNEXPECTED_AT_P1 = "UnexpectedAtP1"
    UNEXPECTED_MULTISTEP = "UnexpectedMultistep"
    INCOMPLETE_PHASE_B = "IncompletePhaseB"


class Decision(Enum):
    """What is done with all tables of a sidecar."""

    ABORT = "abort"
    ROLL_BACK = "roll_back"
    ROLL_FORWARD = "roll_forward"
    STALE = "stale"
    """The write was published and only its sidecar stayed."""


@dataclass(frozen=True, slots=True)
class PinState:
    """A pin of a sidecar beside what the graph shows: `head` of the dataset, `pin` of the branch (0 without one)."""

    head: int
    pin: int
    expected: int
    post: int
    confirmed: int | None = None


@dataclass(frozen=True, slots=True)
class _Row:
    modes: frozenset[Mode]
    fits: Callable[[PinState], bool]
    result: PinClass


_ANY = frozenset(Mode)
_STRICT, _LOOSE, _CONFIRMED = (frozenset({mode}) for mode in Mode)

CLASSES: tuple[_Row, ...] = (
    _Row(_ANY, lambda s: s.head < s.pin, PinClass.INVARIANT_VIOLATION),
    _Row(_ANY, lambda s: s.head == s.pin, PinClass.NO_MOVEMENT),
    _Row(_CONFIRMED, lambda s: s.confirmed is None, PinClass.INCOMPLETE_PHASE_B),
    _Row(_CONFIRMED, lambda s: s.head == s.confirmed and s.expected == s.pin, PinClass.ROLLED_PAST_EXPECTED),
    _Row(_CONFIRMED, lambda _: True, PinClass.UNEXPECTED_MULTISTEP),
    _Row(
        _STRICT,
        lambda s: s.head == s.pin + 1 and s.expected == s.pin and s.post == s.head,
        PinClass.ROLLED_PAST_EXPECTED,
    ),
    _Row(_STRICT, lambda s: s.head == s.pin + 1, PinClass.UNEXPECTED_AT_P1),
    _Row(_STRICT, lambda _: True, PinClass.UNEXPECTED_MULTISTEP),
    _Row(_LOOSE, lambda s: s.expected == s.pin, PinClass.ROLLED_PAST_EXPECTED),
    _Row(_LOOSE, lambda s: s.head == s.pin + 1, PinClass.UNEXPECTED_AT_P1),
    _Row(_LOOSE, lambda _: True, PinClass.UNEXPECTED_MULTISTEP),
)


def mode_of(writer_kind: WriterKind | str, schema_version: int) -> Mode:
    """How to read a sidecar. A writer kind of a later release counts as strict, which never rolls too far forward."""
    mode = MODES.get(writer_kind, Mode.STRICT)
    if mode is Mode.CONFIRMED and schema_version < CONFIRMED_SINCE:
        return Mode.LOOSE
    return mode


def classify(state: PinState, mode: Mode) -> PinClass:
    """Class of one pin."""
    return next(row.result for row in CLASSES if mode in row.modes and row.fits(state))


def decide(states: Sequence[PinState], mode: Mode) -> Decision:
    """One decision for all tables of a sidecar: finished by all, or undone by all."""
    classes = [classify(state, mode) for state in states]
    if PinClass.INVARIANT_VIOLATION in classes:
        return Decision.ABORT
    if all(c is PinClass.ROLLED_PAST_EXPECTED for c in classes):
        return Decision.ROLL_FORWARD
    untouched = all(c is PinClass.NO_MOVEMENT for c in classes)
    if untouched and any(state.pin > state.expected for state in states):
        return Decision.STALE
    return Decision.ROLL_BACK

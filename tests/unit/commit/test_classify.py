"""Classes and decisions of recovery, from the tables of the storage format (6.3 to 6.5)."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from spark_omnigraph.commit.classify import MODES, Decision, Mode, PinClass, PinState, classify, decide, mode_of
from spark_omnigraph.commit.plan import WriterKind

V, N, R, P1, M, I = (  # noqa: E741 - the table below reads like the one in the format
    PinClass.INVARIANT_VIOLATION,
    PinClass.NO_MOVEMENT,
    PinClass.ROLLED_PAST_EXPECTED,
    PinClass.UNEXPECTED_AT_P1,
    PinClass.UNEXPECTED_MULTISTEP,
    PinClass.INCOMPLETE_PHASE_B,
)


@pytest.mark.parametrize(
    ("mode", "head", "pin", "expected", "post", "confirmed", "result"),
    [
        (Mode.STRICT, 3, 4, 4, 5, None, V),
        (Mode.LOOSE, 3, 4, 4, 5, None, V),
        (Mode.CONFIRMED, 3, 4, 4, 5, 5, V),
        (Mode.STRICT, 4, 4, 4, 5, None, N),
        (Mode.LOOSE, 4, 4, 4, 5, None, N),
        (Mode.CONFIRMED, 4, 4, 4, 5, None, N),
        (Mode.CONFIRMED, 7, 4, 4, 5, 7, R),
        (Mode.CONFIRMED, 7, 4, 3, 5, 7, M),
        (Mode.CONFIRMED, 6, 4, 4, 5, 7, M),
        (Mode.CONFIRMED, 5, 4, 4, 5, None, I),
        (Mode.STRICT, 5, 4, 4, 5, None, R),
        (Mode.STRICT, 5, 4, 3, 5, None, P1),
        (Mode.STRICT, 5, 4, 4, 6, None, P1),
        (Mode.STRICT, 6, 4, 4, 5, None, M),
        (Mode.LOOSE, 5, 4, 4, 5, None, R),
        (Mode.LOOSE, 9, 4, 4, 5, None, R),
        (Mode.LOOSE, 5, 4, 3, 4, None, P1),
        (Mode.LOOSE, 6, 4, 3, 4, None, M),
    ],
)
def test_the_table_of_classes(
    mode: Mode, head: int, pin: int, expected: int, post: int, confirmed: int | None, result: PinClass
) -> None:
    assert classify(PinState(head, pin, expected, post, confirmed), mode) is result


@pytest.mark.parametrize(
    ("kind", "version", "mode"),
    [
        ("Mutation", 2, Mode.STRICT),
        ("Load", 1, Mode.STRICT),
        ("SchemaApply", 2, Mode.LOOSE),
        ("EnsureIndices", 1, Mode.LOOSE),
        ("Optimize", 2, Mode.LOOSE),
        ("BranchMerge", 2, Mode.CONFIRMED),
        ("BranchMerge", 1, Mode.LOOSE),
        ("SomethingNew", 2, Mode.STRICT),
    ],
)
def test_modes_by_writer(kind: str, version: int, mode: Mode) -> None:
    assert mode_of(WriterKind.of(kind), version) is mode


def test_every_kind_of_write_has_a_mode_and_prints_as_it_is_recorded() -> None:
    assert set(MODES) == set(WriterKind)
    assert f"{WriterKind.LOAD} {WriterKind.of('BranchMerge')} {WriterKind.of('Vacuum')}" == "Load BranchMerge Vacuum"
    assert json.dumps(WriterKind.SCHEMA_APPLY) == '"SchemaApply"'
    assert pa.array([WriterKind.OPTIMIZE, WriterKind.of("Vacuum")], pa.string()).to_pylist() == ["Optimize", "Vacuum"]


LANDED, UNMOVED, FAR = PinState(5, 4, 4, 5), PinState(4, 4, 4, 5), PinState(9, 4, 4, 5)
BROKEN, PUBLISHED = PinState(3, 4, 4, 5), PinState(5, 5, 4, 5)


@pytest.mark.parametrize(
    ("states", "decision"),
    [
        ([], Decision.ROLL_FORWARD),
        ([LANDED, LANDED], Decision.ROLL_FORWARD),
        ([LANDED, UNMOVED], Decision.ROLL_BACK),
        ([UNMOVED], Decision.ROLL_BACK),
        ([LANDED, FAR], Decision.ROLL_BACK),
        ([LANDED, BROKEN], Decision.ABORT),
        ([PUBLISHED, PUBLISHED], Decision.STALE),
        ([PUBLISHED, UNMOVED], Decision.STALE),
        ([PUBLISHED, LANDED], Decision.ROLL_BACK),
    ],
)
def test_one_decision_for_all_tables(states: list[PinState], decision: Decision) -> None:
    assert decide(states, Mode.STRICT) is decision

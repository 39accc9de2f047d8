"""Many random questions over several random graphs."""

from __future__ import annotations

import random
from pathlib import Path

from tests.differential.play import Ways, first_mismatch, forms, minimal
from tests.differential.questions import Maker
from tests.differential.worlds import make_world

MOST_SHOWN = 10


def compare(seed: int, cases: int, worlds: int, folder: Path, ways: Ways = forms) -> tuple[int, list[str]]:
    """How many questions were compared, and the mismatches as text, which are printed as they are found."""
    found: list[str] = []
    compared = 0
    for number in range(worlds):
        source = random.Random(f"{seed}/{number}")
        world = make_world(source, folder / str(number))
        for _ in range(cases // worlds):
            state = source.choice(world.states)
            question = Maker(source, world.catalog, state.rows).question()
            try:
                mismatch = first_mismatch(world, state, question, ways)
            except BaseException:
                print(f"seed {seed}, graph {number}, {state.name}: {question.text} {question.given}", flush=True)
                raise
            compared += 1
            if mismatch is not None:
                found.append(f"seed {seed}, graph {number}: {minimal(world, mismatch, ways).shown(world.schema)}")
                print(found[-1], flush=True)
            if len(found) == MOST_SHOWN:
                return compared, found
    return compared, found

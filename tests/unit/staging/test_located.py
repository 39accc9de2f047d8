from __future__ import annotations

import pytest

from spark_omnigraph.staging import located
from spark_omnigraph.staging.located import LocatedRowsBuilder


@pytest.mark.parametrize("count", [0, 1, 3, 4, 9])
def test_texts_are_unpacked_by_runs(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(located, "TEXTS", 4)
    builder = LocatedRowsBuilder()
    for number in range(count):
        builder.add(10 * number, number, 2**40 + number, f"täxt {number}")
    rows = builder.built()
    assert rows.ordinals.tolist() == [10 * number for number in range(count)]
    assert rows.lines.tolist() == list(range(count))
    assert rows.offsets.tolist() == [2**40 + number for number in range(count)]
    runs = [rows.texts(run) for run in range(len(rows.packed))]
    assert [len(run) for run in runs] == [4] * (count // 4) + ([count % 4] if count % 4 else [])
    assert [text for run in runs for text in run] == [f"täxt {number}" for number in range(count)]

from __future__ import annotations

import pytest

from spark_omnigraph.records.mode import bad_row_limit


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("25", 25), ("0%", 0.0), ("5%", 0.05), ("0.5%", 0.005), ("100%", 1.0), ("0.05", 0.05), (" 7 ", 7)],
)
def test_a_limit_is_a_count_a_percentage_or_a_fraction(text: str, expected: int | float) -> None:
    got = bad_row_limit(text)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize("text", ["-1", "1.5", "101%", "-1%", "%", "many", "", "nan%", "nan", "5%%", "٣", "9" * 5000])
def test_anything_else_is_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number of rows nor a share"):
        bad_row_limit(text)

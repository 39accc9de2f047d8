from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_omnigraph.catalog.dates import days_from_civil, parse_date, parse_datetime, parse_day, parse_instant
from spark_omnigraph.records.date_columns import read_dates, read_datetimes

DAY = 86_400_000
JAN_5 = 19727
"""2024-01-05 in days since 1970-01-01."""

DATES = {
    "2024-01-05": JAN_5,
    "2024-1-5": JAN_5,
    "2024-01-5": JAN_5,
    "2024-1-05": JAN_5,
    "20240105": JAN_5,
    "1970-01-01": 0,
    "1969-12-31": -1,
    "0000-01-01": -719_528,
    "9999-12-31": 2_932_896,
    "2024-02-29": 19782,
    "2000-02-29": 11016,
    "+10999-12-31": 3_298_139,
    "+2024-01-05": JAN_5,
    "-0001-01-01": -719_893,
    "2024-01-05T23:30:00-02:00": JAN_5 + 1,
    "2024-01-05T00:30:00+02:00": JAN_5 - 1,
    "2024-01-05 10:11:12": JAN_5,
    "1969-12-31T23:59:59.9999Z": -1,
}
NO_DATES = [
    "",
    "05/01/2024",
    "2024/01/05",
    "2024-02-30",
    "2023-02-29",
    "1900-02-29",
    "2024-13-01",
    "2024-00-01",
    "2024-01-00",
    "2024-01-32",
    " 2024-01-05",
    "2024-01-05 ",
    "2024-01",
    "24-01-05",
    "2024-1-5x",
    "2024-001-05",
    "202401",
    "19727",
    "-5",
    "+999-01-01",
    "2024-01-05T",
    "２０２４-01-05",
    "now",
]
DATETIMES = {
    "2024-01-05T10:11:12": JAN_5 * DAY + 36_672_000,
    "2024-01-05t10:11:12": JAN_5 * DAY + 36_672_000,
    "2024-01-05 10:11:12": JAN_5 * DAY + 36_672_000,
    "2024-01-05T10:11:12Z": JAN_5 * DAY + 36_672_000,
    "2024-01-05T10:11:12z": JAN_5 * DAY + 36_672_000,
    "2024-01-05T10:11:12 Z": JAN_5 * DAY + 36_672_000,
    "2024-01-05T10:11:12.5Z": JAN_5 * DAY + 36_672_500,
    "2024-01-05T10:11:12.9999Z": JAN_5 * DAY + 36_672_999,
    "2024-01-05T10:11:12.000000001": JAN_5 * DAY + 36_672_000,
    "2024-01-05T10:11:12.123456789123+00:00": JAN_5 * DAY + 36_672_123,
    "2024-01-05T10:11:12+02:00": JAN_5 * DAY + 36_672_000 - 7_200_000,
    "2024-01-05T10:11:12-02:30": JAN_5 * DAY + 36_672_000 + 9_000_000,
    "2024-01-05T10:11:12 -02:30": JAN_5 * DAY + 36_672_000 + 9_000_000,
    "2024-01-05T10:11:12.25-02:30": JAN_5 * DAY + 36_672_250 + 9_000_000,
    "2024-01-05": JAN_5 * DAY,
    "2024-1-5": JAN_5 * DAY,
    "20240105": JAN_5 * DAY,
    "1969-12-31T23:59:59.9999Z": -1,
    "0000-01-01T00:00:00Z": -719_528 * DAY,
}
NO_DATETIMES = [
    "2024-01-05T10:11Z",
    "2024-01-05T10:11",
    "2024-01-05T10",
    "2024-01-05T24:00:00",
    "2024-01-05T23:60:00",
    "2024-01-05T23:59:60",
    "2024/01/05 10:11:12",
    " 2024-01-05T10:11:12",
    "2024-01-05T10:11:12 ",
    "2024-01-05T10:11:12.",
    "2024-01-05T10:11:12.Z",
    "2024-01-05T10:11:12.5x",
    "2024-01-05T10:11:12+02",
    "2024-01-05T10:11:12+0200",
    "2024-01-05T10:11:12+24:00",
    "2024-01-05T10:11:12+02:60",
    "2024-01-05T10:11:12  Z",
    "2024-01-05T10:11:12ZZ",
    "2024-02-30T10:11:12Z",
    "2024-1-5T10:11:12Z",
    "2024-01-05X10:11:12Z",
    "2024-01-05T10.11.12Z",
    "+2024-01-05",
    "1704449472001",
    "",
]


NOON = (JAN_5 * 86_400 + 43_200) * 10**9
INSTANTS = {
    "2024-01-05": (NOON - 43_200 * 10**9, False),
    "2024-01-05Z": (NOON - 43_200 * 10**9, True),
    "2024-01-05T12": (NOON, False),
    " 2024-01-05 12:00 ": (NOON, False),
    "2024-01-05t12:00:00": (NOON, False),
    "2024-01-05T12:00:00Z": (NOON, True),
    "2024-01-05T14:00+02:00": (NOON, True),
    "2024-01-05T09:30:00 -0230": (NOON, True),
    "2024-01-05T12:00:00.5z": (NOON + 500_000_000, True),
    "2024-01-05T12:00:00,123456789": (NOON + 123_456_789, False),
    "2024-01-05T12:00:00.12345678900Z": (NOON + 123_456_789, True),
}
NO_INSTANTS = [
    "",
    "yesterday",
    "2024-02-30",
    "20240105",
    "20240105T120000Z",
    "2024-W01-5",
    "2024-01-05T24:00",
    "2024-01-05T12:00:00.",
    "2024-01-05T12:00:00.1234567891",
    "2024-01-05T12:00:00+24:00",
    "2024-01-05T12:00:00+02:60",
]


@pytest.mark.parametrize(("text", "instant"), INSTANTS.items())
def test_times_that_people_write(text: str, instant: tuple[int, bool]) -> None:
    assert parse_instant(text) == instant


@pytest.mark.parametrize("text", NO_INSTANTS)
def test_texts_that_are_no_times(text: str) -> None:
    assert parse_instant(text) is None


def test_a_day_is_no_point_in_time() -> None:
    texts = ("2024-1-5", "20240105", "+2024-01-05", "2024-W01-5", "2024-01-05T23:30:00-02:00")
    assert [parse_day(text) for text in texts] == [JAN_5, JAN_5, JAN_5, None, None]


@pytest.mark.parametrize(("text", "days"), DATES.items())
def test_accepted_dates(text: str, days: int) -> None:
    assert parse_date(text) == days


@pytest.mark.parametrize("text", NO_DATES)
def test_refused_dates(text: str) -> None:
    assert parse_date(text) is None


@pytest.mark.parametrize(("text", "millis"), DATETIMES.items())
def test_accepted_points_in_time(text: str, millis: int) -> None:
    assert parse_datetime(text) == millis


@pytest.mark.parametrize("text", NO_DATETIMES)
def test_refused_points_in_time(text: str) -> None:
    assert parse_datetime(text) is None


@given(st.dates())
def test_days_agree_with_the_calendar_of_python(day: dt.date) -> None:
    assert days_from_civil(day.year, day.month, day.day) == (day - dt.date(1970, 1, 1)).days


@given(st.integers(-(10**6), 10**6), st.integers(1, 12), st.integers(1, 28))
def test_the_calendar_repeats_every_400_years(year: int, month: int, day: int) -> None:
    assert days_from_civil(year + 400, month, day) - days_from_civil(year, month, day) == 146_097


def _column(texts: list[str | None], in_days: bool) -> list[int | str | None]:
    values, bad = (read_dates if in_days else read_datetimes)(pa.array(texts, pa.string()))
    pairs = zip(texts, values.tolist(), bad.tolist())
    return [None if text is None else "bad" if wrong else value for text, value, wrong in pairs]


def test_columns_of_mixed_texts() -> None:
    texts = [None, *DATES, *NO_DATES, *DATETIMES, *NO_DATETIMES, None]
    for in_days, parse in ((True, parse_date), (False, parse_datetime)):
        expected = [None if t is None else "bad" if parse(t) is None else parse(t) for t in texts]
        assert _column(texts, in_days) == expected


@pytest.mark.parametrize("text", [*DATES, *NO_DATES, *DATETIMES, *NO_DATETIMES])
def test_columns_of_one_text(text: str) -> None:
    for in_days, parse in ((True, parse_date), (False, parse_datetime)):
        expected = parse(text)
        assert _column([text, text, None], in_days) == ["bad" if expected is None else expected] * 2 + [None]


def test_slices_and_empty_columns() -> None:
    texts = pa.array(["x", "2024-01-05", None, "2024-1-5", "y"]).slice(1, 3)
    values, bad = read_dates(texts)
    assert (values.tolist(), bad.tolist()) == ([JAN_5, 0, JAN_5], [False, False, False])
    for empty in (pa.array([], pa.string()), pa.array([None, None], pa.string())):
        values, bad = read_datetimes(empty)
        assert len(values) == len(bad) == len(empty)
        assert not bad.any()


_PIECES = st.sampled_from(
    [*"0123456789", "-", "-", ":", ":", "T", " ", ".", "Z", "z", "+", "2024", "01", "12", "29", "é", "２"]
)


@given(
    st.lists(
        st.one_of(
            st.none(),
            st.lists(_PIECES, max_size=25).map("".join),
            st.datetimes().map(lambda t: t.isoformat()),
            st.datetimes().map(lambda t: t.strftime("%Y-%m-%dT%H:%M:%S") + "Z"),
            st.datetimes(timezones=st.timezones()).map(lambda t: t.isoformat(" ")),
            st.tuples(st.datetimes(), st.integers(0, 24), _PIECES).map(
                lambda x: x[0].isoformat()[: x[1]] + x[2] + x[0].isoformat()[x[1] + 1 :]
            ),
        ),
        max_size=12,
    )
)
def test_columns_read_what_single_values_read(texts: list[str | None]) -> None:
    for in_days, parse in ((True, parse_date), (False, parse_datetime)):
        expected = [None if t is None else "bad" if parse(t) is None else parse(t) for t in texts]
        assert _column(texts, in_days) == expected

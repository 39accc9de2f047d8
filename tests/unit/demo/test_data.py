"""The converter of the demo, on a small database of the same tables and on the real one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from spark_omnigraph.catalog.types import embedding_source
from spark_omnigraph.demo.data import (
    Cleaning,
    Converted,
    Film,
    broken_lines,
    convert,
    movies_database,
    read_films,
    schema_text,
)
from spark_omnigraph.errors import StorageError
from spark_omnigraph.lang.pg import compile_schema
from tests.support.film_database import EMPTY, Row, database
from tests.support.films import FILM_COUNTS


def one(folder: Path, **values: object) -> tuple[Film, Cleaning]:
    cleaning = Cleaning()
    (film,) = read_films(database(folder, {**EMPTY, "ID": 1, **values}), cleaning)
    return film, cleaning


def records(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_writes_one_record_a_line_nodes_before_edges(tmp_path: Path) -> None:
    film: Row = {
        **EMPTY,
        "ID": 7,
        "Genre": "Drama, Comedy",
        "Language": "French",
        "Country": "Belgium, France",
        "Director": "Ada Lang",
        "Writer": "Ada Lang, Bo Ek",
        "Cast": "Cy Ray",
    }

    done = convert(database(tmp_path, film), tmp_path)

    nodes, edges = done.files
    person = {"first_year": 1990, "last_year": 1990}
    assert records(nodes) == [
        {"type": "Genre", "data": {"name": "Comedy"}},
        {"type": "Genre", "data": {"name": "Drama"}},
        {"type": "Language", "data": {"name": "French"}},
        {"type": "Country", "data": {"name": "Belgium"}},
        {"type": "Country", "data": {"name": "France"}},
        {"type": "Person", "data": {"name": "Ada Lang", **person}},
        {"type": "Person", "data": {"name": "Bo Ek", **person}},
        {"type": "Person", "data": {"name": "Cy Ray", **person}},
        {
            "type": "Film",
            "data": {
                "name": "A Film (1990)",
                "title": "A Film",
                "year": 1990,
                "released": "1990-05-06",
                "imdb": "tt0000001",
                "oscars_won": 0,
                "oscars_nominated": 0,
            },
        },
    ]
    assert records(edges) == [
        {"edge": "Directed", "from": "Ada Lang", "to": "A Film (1990)", "data": {"solo": True}},
        {"edge": "Wrote", "from": "Ada Lang", "to": "A Film (1990)", "data": {"solo": False}},
        {"edge": "Wrote", "from": "Bo Ek", "to": "A Film (1990)", "data": {"solo": False}},
        {"edge": "ActedIn", "from": "Cy Ray", "to": "A Film (1990)"},
        {"edge": "HasGenre", "from": "A Film (1990)", "to": "Drama"},
        {"edge": "HasGenre", "from": "A Film (1990)", "to": "Comedy"},
        {"edge": "InLanguage", "from": "A Film (1990)", "to": "French"},
        {"edge": "ProducedIn", "from": "A Film (1990)", "to": "Belgium"},
        {"edge": "ProducedIn", "from": "A Film (1990)", "to": "France"},
    ]
    assert done.counts["node:Person"] == 3
    assert done.total == 18


def test_takes_reviews_and_awards(tmp_path: Path) -> None:
    film: Row = {**EMPTY, "ID": 7, "Metacritic": 81, "Awards": "Won 2 Oscars. Nominated for 11 Oscars."}
    review: Row = {"ID": 7, "Rating": 7.5, "Meter": 88, "Reviews": 40, "BoxOffice": 9e9, "Production": "Toho, Gaumont"}

    (read,) = read_films(database(tmp_path, film, reviews=(review,)), Cleaning())

    expected = {
        "metacritic": 81,
        "oscars_won": 2,
        "oscars_nominated": 11,
        "critics": 7.5,
        "tomatometer": 88,
        "reviews": 40,
        "box_office": 9_000_000_000,
        "studios": ["Toho", "Gaumont"],
    }
    assert {name: read.data[name] for name in expected} == expected


@pytest.mark.parametrize("unknown", [None, "", "N/A", "  "])
def test_unknown_values_are_left_out(tmp_path: Path, unknown: str | None) -> None:
    film, _ = one(tmp_path, Rating=unknown, Country=unknown, Cast=unknown, Awards=unknown)

    assert "rating" not in film.data
    assert (film.countries, film.cast) == ((), ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ada Lang, Max Baer, Jr., Zoe Low", ("Ada Lang", "Max Baer Jr.", "Zoe Low")),
        ("Stacy Keach, Sr.", ("Stacy Keach Sr.",)),
        ("Joaquin Garay, III, Bo Ek", ("Joaquin Garay III", "Bo Ek")),
        ("Diana, Princess of Wales, Glen Ballard", ("Diana, Princess of Wales", "Glen Ballard")),
        ("Radu, Prince Consort of Romania", ("Radu, Prince Consort of Romania",)),
        ("Tim Bentinck, 12th Earl of Portland", ("Tim Bentinck, 12th Earl of Portland",)),
        ("Earth, Wind & Fire, Barry Gibb", ("Earth, Wind & Fire", "Barry Gibb")),
        ("50 Cent, Prince Philip, Earl Cameron, Prince", ("50 Cent", "Prince Philip", "Earl Cameron", "Prince")),
        ("Bo  Ek, Bo Ek", ("Bo Ek",)),
    ],
)
def test_names_with_commas_stay_whole(tmp_path: Path, text: str, names: tuple[str, ...]) -> None:
    film, _ = one(tmp_path, Cast=text)

    assert film.cast == names


def test_a_repeated_name_gives_one_edge(tmp_path: Path) -> None:
    film, cleaning = one(tmp_path, Cast="Bo Ek, Cy Ray, Bo Ek")

    assert film.cast == ("Bo Ek", "Cy Ray")
    assert cleaning.repeats_dropped == 1


@pytest.mark.parametrize(
    ("column", "value", "field", "kept"),
    [
        ("Released", "1990-01-01", "released", None),
        ("Released", "1990-01-02", "released", "1990-01-02"),
        ("Runtime", 4.0, "runtime", None),
        ("Runtime", 5.0, "runtime", 5),
        ("Rating", "M/PG", "rating", "M-PG"),
        ("imdbID", "N/A", "imdb", None),
    ],
)
def test_values_are_cleaned(tmp_path: Path, column: str, value: object, field: str, kept: object) -> None:
    film, _ = one(tmp_path, **{column: value})

    assert film.data.get(field) == kept


def test_a_gross_with_a_fraction_is_dropped(tmp_path: Path) -> None:
    cleaning = Cleaning()
    review: Row = {"ID": 1, "BoxOffice": 126.404}

    (film,) = read_films(database(tmp_path, {**EMPTY, "ID": 1}, reviews=(review,)), cleaning)

    assert "box_office" not in film.data
    assert cleaning.grosses_dropped == 1


def test_multiple_languages_is_not_a_language(tmp_path: Path) -> None:
    film, cleaning = one(tmp_path, Language="English, multiple languages")

    assert film.languages == ("English",)
    assert cleaning.not_languages == 1


def test_films_of_one_title_and_year_are_told_apart(tmp_path: Path) -> None:
    cleaning = Cleaning()
    films: tuple[Row, ...] = (
        {**EMPTY, "ID": 2, "imdbID": "tt0000002"},
        {**EMPTY, "ID": 1, "imdbID": "tt0000001"},
        {**EMPTY, "ID": 3, "imdbID": "tt0000003", "Year": 1991},
    )

    names = [film.name for film in read_films(database(tmp_path, *films), cleaning)]

    assert names == ["A Film (1990, tt0000001)", "A Film (1990, tt0000002)", "A Film (1991)"]
    assert cleaning.titles_told_apart == 2


def test_the_first_film_keeps_a_repeated_identifier(tmp_path: Path) -> None:
    cleaning = Cleaning()
    films: tuple[Row, ...] = ({**EMPTY, "ID": 1}, {**EMPTY, "ID": 2, "Title": "A Film Redux"})

    read = read_films(database(tmp_path, *films), cleaning)

    assert [film.data.get("imdb") for film in read] == ["tt0000001", None]
    assert cleaning.imdb_repeats_dropped == 1


def test_careers_span_all_films(tmp_path: Path) -> None:
    films: tuple[Row, ...] = (
        {**EMPTY, "ID": 1, "Year": 1999, "Director": "Ada Lang"},
        {**EMPTY, "ID": 2, "Year": 1980, "Cast": "Ada Lang"},
    )

    nodes, _ = convert(database(tmp_path, *films), tmp_path).files

    assert records(nodes)[0] == {"type": "Person", "data": {"name": "Ada Lang", "first_year": 1980, "last_year": 1999}}


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "movies.db"
    path.write_text("not a database at all, but long enough to be read as a header of one" * 20)

    with pytest.raises(StorageError, match=r"movies\.db"):
        read_films(path, Cleaning())


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Converted:
    """The real database, converted once."""
    return convert(movies_database(), tmp_path_factory.mktemp("real"))


def test_the_real_data_gives_the_documented_graph(real: Converted) -> None:
    assert real.counts == FILM_COUNTS
    assert real.cleaning.to_dict() == {
        "names_joined": 190,
        "repeats_dropped": 0,
        "days_unknown": 11_468,
        "runtimes_dropped": 2,
        "grosses_dropped": 6,
        "imdb_repeats_dropped": 2,
        "titles_told_apart": 10,
        "not_languages": 1,
    }


def test_converting_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    films: tuple[Row, ...] = tuple(
        {**EMPTY, "ID": n, "Title": f"Film {n}", "Cast": f"Actor {n % 3}, Actor {n % 5}, Zoe {n}"} for n in range(20)
    )
    source = database(tmp_path, *films)
    folders = [tmp_path / "a", tmp_path / "b"]

    for folder in folders:
        folder.mkdir()
        convert(source, folder)

    for name in ("nodes.jsonl", "edges.jsonl"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1


def test_broken_lines_name_each_mistake() -> None:
    lines = [line for line in broken_lines().splitlines() if line]

    good, broken = lines[1:3], lines[3:]
    assert all(json.loads(line) for line in good)
    assert len(broken) % 2 == 0
    assert all(line.startswith("// ") for line in broken[::2])
    assert all(line.startswith("{") for line in broken[1::2])
    assert len(broken) // 2 == 20


def test_the_schema_has_every_type_and_field_of_the_data(real: Converted) -> None:
    catalog = compile_schema(schema_text())

    assert set(real.counts) == {table.table_key for table in catalog.tables()}
    fields: dict[str, set[str]] = {table.table_key: set() for table in catalog.tables()}
    for path in real.files:
        for record in records(path):
            key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
            fields[key].update(cast("dict[str, object]", record.get("data", {})))
    given = {t.table_key: {p.name for p in t.properties if embedding_source(p) is None} for t in catalog.tables()}
    assert fields == given


def test_the_ten_genres_of_a_film_are_the_limit_of_the_schema() -> None:
    genres = compile_schema(schema_text()).edges["HasGenre"].cardinality
    films = read_films(movies_database(), Cleaning())

    full = [film.name for film in films if len(film.genres) == genres.max]

    assert full == ["Pocahontas (1995)"]

"""Film databases with the tables of bokeh-sampledata, as far as the demo reads them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

OMDB = (
    '"ID" INTEGER, "imdbID" TEXT, "Title" TEXT, "Year" INTEGER, "Rating" TEXT, "Runtime" REAL, "Genre" TEXT,'
    ' "Released" TEXT, "Director" TEXT, "Writer" TEXT, "Cast" TEXT, "Metacritic" INTEGER, "Language" TEXT,'
    ' "Country" TEXT, "Awards" TEXT'
)
TOMATOES = '"ID" INTEGER, "Rating" REAL, "Meter" INTEGER, "Reviews" INTEGER, "BoxOffice" REAL, "Production" TEXT'
EMPTY = {"imdbID": "tt0000001", "Title": "A Film", "Year": 1990, "Released": "1990-05-06", "Genre": ""}

Row = dict[str, object]


def database(folder: Path, *films: Row, reviews: tuple[Row, ...] = ()) -> Path:
    """Makes `movies.db` in a folder from rows that name the columns they fill."""
    path = folder / "movies.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE omdb ({OMDB})")
        connection.execute(f"CREATE TABLE tomatoes ({TOMATOES})")
        for table, rows in (("omdb", films), ("tomatoes", reviews)):
            for row in rows:
                columns = ", ".join(f'"{name}"' for name in row)
                marks = ", ".join("?" for _ in row)
                connection.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", tuple(row.values()))
    return path


def small_database(folder: Path) -> Path:
    """The two films that the mistakes of the demo refer to."""
    tarantino: Row = {
        "ID": 1,
        "imdbID": "tt0110912",
        "Title": "Pulp Fiction",
        "Year": 1994,
        "Released": "1994-05-21",
        "Genre": "Crime, Drama",
        "Language": "English",
        "Country": "United States",
        "Director": "Quentin Tarantino",
        "Writer": "Quentin Tarantino, Roger Avary",
        "Cast": "John Travolta, Uma Thurman",
    }
    disney: Row = {
        "ID": 2,
        "imdbID": "tt0114148",
        "Title": "Pocahontas",
        "Year": 1995,
        "Released": "1995-06-10",
        "Genre": "Biography, Animation, Musical, Romance, Comedy, Drama, Fantasy, Family, History, Adventure",
        "Language": "English",
        "Country": "United States",
        "Director": "Eric Goldberg, Mike Gabriel",
        "Writer": "Mike Gabriel",
        "Cast": "Irene Bedard, Mel Gibson",
    }
    western: Row = {**EMPTY, "ID": 3, "Genre": "Western", "Country": "Italy", "Cast": "Uma Thurman"}
    return database(folder, tarantino, disney, western)

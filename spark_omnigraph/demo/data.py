"""The data of the demo: films and their people, from the package `bokeh-sampledata` to JSON lines.

Everything is deterministic: the same database gives the same bytes. What is cleaned on the way is counted by
`Cleaning` and described in `docs/demo.md`.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields
from importlib import import_module, resources
from pathlib import Path
from typing import BinaryIO

import msgspec

from spark_omnigraph.errors import StorageError, UsageError

INSTALL_DEMO = 'pip install "spark-omnigraph[demo]"'
"""What brings the data set and Spark."""

NODES_FILE = "nodes.jsonl"
EDGES_FILE = "edges.jsonl"

Scalar = str | int | float | bool | None
Data = dict[str, Scalar | list[str]]

_FILMS = """
    SELECT o."ID", o."imdbID", o."Title", o."Year", o."Released", o."Rating", o."Runtime", o."Metacritic",
           o."Awards", o."Genre", o."Language", o."Country", o."Director", o."Writer", o."Cast",
           t."Meter", t."Rating", t."Reviews", t."BoxOffice", t."Production"
    FROM omdb AS o LEFT JOIN tomatoes AS t ON t."ID" = o."ID"
    ORDER BY o."ID"
"""

# Commas separate the names of a column and stand inside some of them. What follows a comma belongs to the name
# before it when it is a generation, a company's legal form, or a title of nobility.
_GENERATION = re.compile(r"(?:Jr|Sr)\.?|III?|IV|Inc\.?|Ltd\.?")
_RANK = "(?:Baronet|Baron|Earl|Marquess|Duke|Duchess|Countess|Princess|Prince|Prince Consort)"
_TITLE = re.compile(rf"\d+(?:st|nd|rd|th) {_RANK}\b.*|{_RANK} of .+")
_ENSEMBLES = ("Earth, Wind & Fire", "Crosby, Stills & Nash", "Goodby, Silverstein & Partners")

_NOT_A_LANGUAGE = frozenset({"multiple languages"})
_SHORTEST = 5
_WON = re.compile(r"Won (\d+) Oscar")
_NOMINATED = re.compile(r"Nominated for (\d+) Oscar")


@dataclass(slots=True)
class Cleaning:
    """How many values of the source were changed, by what was wrong with them."""

    names_joined: int = 0
    repeats_dropped: int = 0
    days_unknown: int = 0
    runtimes_dropped: int = 0
    grosses_dropped: int = 0
    imdb_repeats_dropped: int = 0
    titles_told_apart: int = 0
    not_languages: int = 0

    def to_dict(self) -> dict[str, int]:
        return {f.name: int(getattr(self, f.name)) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class Film:
    """One film of the source, cleaned; `name` is its key."""

    name: str
    data: Data
    year: int
    genres: tuple[str, ...]
    languages: tuple[str, ...]
    countries: tuple[str, ...]
    directors: tuple[str, ...]
    writers: tuple[str, ...]
    cast: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Converted:
    """Receipt of `convert`: the files, records per type (`node:Film`, …) in file order, and what was cleaned."""

    files: tuple[Path, ...]
    counts: dict[str, int]
    cleaning: Cleaning

    @property
    def total(self) -> int:
        return sum(self.counts.values())


def movies_database() -> Path:
    """Path of the film database of `bokeh-sampledata`; `UsageError` says what to install when it is missing."""
    try:
        module = import_module("bokeh_sampledata.movies_data")
    except ModuleNotFoundError as error:
        raise UsageError(f"the demo needs the data set bokeh-sampledata: {INSTALL_DEMO}") from error
    return Path(str(module.movie_path))


def schema_text() -> str:
    """The schema of the demo graph."""
    return _packaged("demo.pg")


def broken_lines() -> str:
    """JSON lines in which nearly every line has a mistake of its own."""
    return _packaged("demo_broken.jsonl")


def _packaged(name: str) -> str:
    return resources.files("spark_omnigraph.demo").joinpath(name).read_text(encoding="utf-8")


def convert(database: Path, folder: Path) -> Converted:
    """Write the films of a database as `nodes.jsonl` and `edges.jsonl` into an existing folder."""
    cleaning = Cleaning()
    films = read_films(database, cleaning)
    counts: Counter[str] = Counter()
    nodes, edges = folder / NODES_FILE, folder / EDGES_FILE
    with nodes.open("wb") as out:
        _write(out, _node_records(films), counts)
    with edges.open("wb") as out:
        _write(out, _edge_records(films), counts)
    return Converted((nodes, edges), dict(counts), cleaning)


def read_films(database: Path, cleaning: Cleaning) -> list[Film]:
    """All films in the order of their number in the source."""
    try:
        with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            rows = connection.execute(_FILMS).fetchall()
    except sqlite3.Error as error:
        raise StorageError(f"cannot read the films in '{database}': {error}") from error
    labels = Counter(_label(row[2], row[3]) for row in rows)
    cleaning.titles_told_apart = sum(n for n in labels.values() if n > 1)
    seen: set[str] = set()
    return [_film(row, labels, seen, cleaning) for row in rows]


def _label(title: str, year: int) -> str:
    return f"{_tidy(title)} ({year})"


def _film(row: Sequence[Scalar], labels: Counter[str], seen: set[str], cleaning: Cleaning) -> Film:
    number, imdb, title, year, released, rating, runtime, metascore, awards, *credits = row
    genre, language, country, director, writer, cast, meter, critics, reviews, gross, production = credits
    title, year = _tidy(str(title)), int(str(year))
    name = _label(title, year)
    if labels[name] > 1:
        name = f"{title} ({year}, {imdb or number})"
    studios = _names(production, cleaning)
    data: Data = {
        "name": name,
        "title": title,
        "year": year,
        "released": _day(_text(released), cleaning),
        "imdb": _first_use(_text(imdb), seen, cleaning),
        "rating": _rating(_text(rating)),
        "runtime": _runtime(runtime, cleaning),
        "metacritic": metascore,
        "tomatometer": meter,
        "critics": critics,
        "reviews": reviews,
        "box_office": _gross(gross, cleaning),
        "oscars_won": _number(_WON, awards),
        "oscars_nominated": _number(_NOMINATED, awards),
        "studios": list(studios) or None,
    }
    return Film(
        name=name,
        data={key: value for key, value in data.items() if value is not None},
        year=year,
        genres=_names(genre, cleaning),
        languages=_languages(_names(language, cleaning), cleaning),
        countries=_names(country, cleaning),
        directors=_names(director, cleaning),
        writers=_names(writer, cleaning),
        cast=_names(cast, cleaning),
    )


def _tidy(text: str) -> str:
    return " ".join(text.split())


def _text(value: Scalar) -> str | None:
    """The text of a value; empty and `N/A` mean that it is not known."""
    text = "" if value is None else _tidy(str(value))
    return None if text in ("", "N/A") else text


def _names(value: Scalar, cleaning: Cleaning) -> tuple[str, ...]:
    """The names of a comma-separated column, each once, in the order of the source."""
    text = _text(value)
    if text is None:
        return ()
    names: list[str] = []
    for part in _parts(text):
        if names and _GENERATION.fullmatch(part):
            names[-1] = f"{names[-1]} {part}"
        elif names and _TITLE.fullmatch(part):
            names[-1] = f"{names[-1]}, {part}"
        else:
            names.append(part)
            continue
        cleaning.names_joined += 1
    once = tuple(dict.fromkeys(names))
    cleaning.repeats_dropped += len(names) - len(once)
    return once


def _parts(text: str) -> list[str]:
    held = {name: name.replace(",", "\0") for name in _ENSEMBLES if name in text}
    for name, masked in held.items():
        text = text.replace(name, masked)
    return [part.replace("\0", ",") for part in text.split(", ")]


def _languages(names: tuple[str, ...], cleaning: Cleaning) -> tuple[str, ...]:
    kept = tuple(name for name in names if name not in _NOT_A_LANGUAGE)
    cleaning.not_languages += len(names) - len(kept)
    return kept


def _day(text: str | None, cleaning: Cleaning) -> str | None:
    """The source writes the first of January where it knows only the year."""
    if text is not None and text.endswith("-01-01"):
        cleaning.days_unknown += 1
        return None
    return text


def _first_use(imdb: str | None, seen: set[str], cleaning: Cleaning) -> str | None:
    """An identifier belongs to the first film that has it; later cuts of a film repeat it."""
    if imdb is None:
        return None
    if imdb in seen:
        cleaning.imdb_repeats_dropped += 1
        return None
    seen.add(imdb)
    return imdb


def _rating(text: str | None) -> str | None:
    return None if text is None else text.replace("/", "-")


def _runtime(value: Scalar, cleaning: Cleaning) -> int | None:
    minutes = None if value is None else int(float(str(value)))
    if minutes is not None and minutes < _SHORTEST:
        cleaning.runtimes_dropped += 1
        return None
    return minutes


def _gross(value: Scalar, cleaning: Cleaning) -> int | None:
    """Grosses with a fraction have their thousands separator read as a decimal point: not usable."""
    if value is None:
        return None
    gross = float(str(value))
    if not gross.is_integer():
        cleaning.grosses_dropped += 1
        return None
    return int(gross)


def _number(pattern: re.Pattern[str], awards: Scalar) -> int:
    found = pattern.search(str(awards or ""))
    return int(found.group(1)) if found else 0


@dataclass(frozen=True, slots=True)
class _Record:
    table_key: str
    body: dict[str, object]


def _node(kind: str, data: Data) -> _Record:
    return _Record(f"node:{kind}", {"type": kind, "data": data})


def _edge(kind: str, source: str, target: str, data: Data | None = None) -> _Record:
    body: dict[str, object] = {"edge": kind, "from": source, "to": target}
    if data:
        body["data"] = data
    return _Record(f"edge:{kind}", body)


def _node_records(films: Sequence[Film]) -> Iterator[_Record]:
    for kind, column in (("Genre", "genres"), ("Language", "languages"), ("Country", "countries")):
        values: set[str] = {name for film in films for name in getattr(film, column)}
        yield from (_node(kind, {"name": name}) for name in sorted(values))
    for name, (first, last) in sorted(_careers(films).items()):
        yield _node("Person", {"name": name, "first_year": first, "last_year": last})
    for film in films:
        yield _node("Film", film.data)


def _careers(films: Iterable[Film]) -> dict[str, tuple[int, int]]:
    careers: dict[str, tuple[int, int]] = {}
    for film in films:
        for name in (*film.directors, *film.writers, *film.cast):
            first, last = careers.get(name, (film.year, film.year))
            careers[name] = (min(first, film.year), max(last, film.year))
    return careers


def _edge_records(films: Iterable[Film]) -> Iterator[_Record]:
    for film in films:
        for kind, people in (("Directed", film.directors), ("Wrote", film.writers)):
            for person in people:
                yield _edge(kind, person, film.name, {"solo": len(people) == 1})
        for person in film.cast:
            yield _edge("ActedIn", person, film.name)
        for kind, names in (
            ("HasGenre", film.genres),
            ("InLanguage", film.languages),
            ("ProducedIn", film.countries),
        ):
            for name in names:
                yield _edge(kind, film.name, name)


def _write(out: BinaryIO, records: Iterable[_Record], counts: Counter[str]) -> None:
    encoder = msgspec.json.Encoder()
    for record in records:
        counts[record.table_key] += 1
        out.write(encoder.encode(record.body) + b"\n")

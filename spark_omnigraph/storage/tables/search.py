"""Full-text and vector search of one table at one version, by position of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.query import MatchQuery

from spark_omnigraph.storage.faults import reading
from spark_omnigraph.storage.tables.commits import text_index_in_memory
from spark_omnigraph.storage.tables.index import TEXT_SETTINGS, VECTOR_SETTINGS, IndexCoverage, has_settings
from spark_omnigraph.storage.tables.reader import Positions, TableReader
from spark_omnigraph.storage.tables.rewritten import rewritten
from spark_omnigraph.storage.tables.scan import fragments_of

Scores = npt.NDArray[np.float64]
"""`float64[n]`, NaN where a row has no score."""

REBUILT_ROWS = 500_000
"""Up to so many rows a column whose index covers only a part, or may know a row by an older text, is indexed anew in
memory, so that all rows are scored alike; above, Lance scores the rest by its own means, and what it finds is checked
against the stored texts."""
TEXT_INDEX_SIZE = 3
"""Times the bytes of its texts that an index in memory takes, the texts among them (measured)."""
EXPANSIONS = 10_000
"""Words within reach of a fuzzy query that are looked for."""

_OFFSET, _SCORE = "_rowoffset", "_score"


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows that a query finds, by ascending position, and the score of each."""

    positions: Positions
    scores: Scores

    def of(self, positions: Positions) -> Scores:
        """Scores of rows, NaN for those that the query does not find."""
        if not len(self.positions):
            return np.full(len(positions), np.nan)
        at = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        return np.where(self.positions[at] == positions, self.scores[at], np.nan)


@dataclass(frozen=True, slots=True)
class Restricted:
    """Rows that a search looks at: those that Lance SQL keeps (None: all), by scalar indexes or without."""

    where: str | None = None
    by_index: bool = True


def _index_in_memory(reader: TableReader, column: str) -> LanceDataset:
    """An index of a text column that has none; Lance would otherwise split its words in another way."""
    key = (reader.identity, column)
    found = reader.memory.get(LanceDataset, key)
    if found is None:
        texts = reader.columns([column])
        with reading(f"index column '{column}' of {reader.table.uri} in memory"):
            found = text_index_in_memory(texts, column)
        reader.memory.put(LanceDataset, key, found, TEXT_INDEX_SIZE * texts.nbytes)
    return found


def text_hits(reader: TableReader, column: str, query: str, edits: int | None = None) -> Hits:
    """Rows whose text has a token of the query, or with `edits` one within so many edits, with their BM25 scores."""
    if column not in reader.names or not reader.rows:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0))
    asked = MatchQuery(query, column, fuzziness=edits or 0, max_expansions=EXPANSIONS)
    index = _text_index(reader, column)
    if index is not None and _is_exact_for_texts(reader, index):
        return _hits(reader, reader.dataset, asked)
    # What an index does not cover, Lance searches for equal words alone.
    if index is None or reader.rows <= REBUILT_ROWS or (edits is not None and index.uncovered):
        return _hits(reader, _index_in_memory(reader, column), asked)
    return _confirmed(reader, index, column, asked)


def is_spread(reader: TableReader, column: str) -> bool:
    """Whether a search of some fragments gives their rows the scores that one of all gives them: by one whole index,
    whose figures do not depend on what is looked at.
    """
    index = _text_index(reader, column) if column in reader.names else None
    return index is not None and _is_exact_for_texts(reader, index)


def fragment_hits(reader: TableReader, asked: tuple[str, str, int | None], fragments: tuple[int, ...]) -> pa.Table:
    """Ids and scores of the rows of some fragments that a search finds, of a column that `is_spread`; asked are column,
    text and edits.
    """
    column, query, edits = asked
    with reading(f"search a text column of {reader.table.uri}"):
        return reader.dataset.scanner(
            columns=["id", _SCORE],
            full_text_query=MatchQuery(query, column, fuzziness=edits or 0, max_expansions=EXPANSIONS),
            fragments=fragments_of(reader.dataset, fragments),
        ).to_table()


def _confirmed(reader: TableReader, index: IndexCoverage, column: str, asked: MatchQuery) -> Hits:
    """What Lance finds, each row once, without rows that it finds by a text which they no longer have."""
    found = _hits(reader, reader.dataset, asked)
    positions, first = np.unique(found.positions, return_index=True)
    scores = np.maximum.reduceat(found.scores, first) if len(first) else found.scores
    doubtful = np.flatnonzero(np.isin(positions, rewritten(reader, index)))
    kept = np.ones(len(positions), dtype=bool)
    if len(doubtful):
        texts = reader.take(positions[doubtful], [column])
        with reading(f"index column '{column}' of {reader.table.uri} in memory"):
            now = text_index_in_memory(texts, column)
        kept[doubtful] = False
        kept[doubtful[_hits(reader, now, asked).positions]] = True
    return Hits(positions[kept], scores[kept])


def _hits(
    reader: TableReader,
    dataset: LanceDataset,
    query: MatchQuery,
    limit: int | None = None,
    among: Restricted = Restricted(),
) -> Hits:
    with reading(f"search a text column of {reader.table.uri}"):
        found = dataset.scanner(
            columns=[_OFFSET, _SCORE],
            full_text_query=query,
            limit=limit,
            filter=among.where,
            prefilter=True,
            use_scalar_index=among.by_index,
        ).to_table()
    positions = found.column(_OFFSET).to_numpy().astype(np.int64)
    order = np.argsort(positions)
    return Hits(positions[order], found.column(_SCORE).to_numpy().astype(np.float64)[order])


def best_text_rows(reader: TableReader, column: str, query: str, count: int, among: Restricted) -> Hits | None:
    """The `count` best rows for a query among those that it looks at, or all when they are fewer; None when the index
    of the column cannot tell. Of rows that score like the last one, some may be missing.
    """
    index = _text_index(reader, column)
    if column not in reader.names or index is None or not _is_exact_for_texts(reader, index):
        return None
    return _hits(reader, reader.dataset, MatchQuery(query, column), count, among)


def _is_exact_for_texts(reader: TableReader, index: IndexCoverage) -> bool:
    """Whether an index knows every row by the text that it has now, and by no other, and scores all of them alike."""
    return not index.uncovered and len(index.segments) == 1 and not len(rewritten(reader, index))


def _text_index(reader: TableReader, column: str) -> IndexCoverage | None:
    """The text index of a column; None where there is none that tells words as ours do, or several of which Lance would
    take any. Of two generations both may find a row, one of them by its old text.
    """
    found = [i for i in reader.indexes if i.columns == (column,) and i.kind.upper() in ("INVERTED", "FTS")]
    usable = len(found) == 1 and has_settings(found[0], TEXT_SETTINGS) and len(found[0].generations) == 1
    return found[0] if usable else None


def nearest_rows(
    reader: TableReader, column: str, query: npt.NDArray[np.float32], count: int, among: Restricted
) -> tuple[Positions, float]:
    """Candidates for the nearest rows among those that it looks at, and a squared distance below which none is
    missing (infinite when these are all).
    """
    with reading(f"search column '{column}' of {reader.table.uri}"):
        found = reader.dataset.scanner(
            columns=[_OFFSET, "_distance"],
            nearest={
                "column": column,
                "q": pa.array(query, pa.float32()),
                "k": count,
                "metric": "l2",
                "use_index": _is_exact(reader, column),
            },
            filter=among.where,
            prefilter=True,
            use_scalar_index=among.by_index,
        ).to_table()
    positions = found.column(_OFFSET).to_numpy().astype(np.int64)
    if len(positions) < count:
        return positions, float("inf")
    return positions, float(np.max(found.column("_distance").to_numpy()))


def _is_exact(reader: TableReader, column: str) -> bool:
    """Whether the column's index looks at every row: one partition of whole vectors does, by the distance asked for."""
    stats = [i for i in reader.indexes if i.columns == (column,)]
    flat = all(i.kind.upper() == "IVF_FLAT" and has_settings(i, VECTOR_SETTINGS) for i in stats)
    return flat and all(len(i.generations) == 1 and _partitions(reader, i) == 1 for i in stats)


def _partitions(reader: TableReader, index: IndexCoverage) -> int:
    with reading(f"read statistics of index '{index.name}'"):
        parts = reader.dataset.stats.index_stats(index.name).get("indices", [])
    return max((int(part.get("num_partitions", 0)) for part in parts), default=0)

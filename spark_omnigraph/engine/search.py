"""Scores of rows: distances of vectors, full-text scores, and which texts a query matches."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_omnigraph.engine.table import Table
from spark_omnigraph.lang.gq.plan import Bm25, Column, Operand, TextForm, TextMatch
from spark_omnigraph.lang.gq.search_values import edits_of, text_of, vector_of
from spark_omnigraph.storage.tables.reader import Positions
from spark_omnigraph.storage.tables.search import Hits, Scores, fragment_hits, text_hits

_RUN = 1 << 22
"""Vector components whose differences are in memory at one time."""


def text_mask(table: Table, match: TextMatch, positions: Positions) -> np.ndarray:
    """Whether each row's text matches."""
    return ~np.isnan(hits_of(table, match).of(positions))


def matching(table: Table, match: TextMatch) -> Positions:
    """Positions of the rows whose text matches, ascending."""
    return hits_of(table, match).positions


def hits_of(table: Table, search: Bm25 | TextMatch) -> Hits:
    """All rows that a search finds, with their scores."""
    return _hits(table, search.column, search.query, _edits(search))


def hits_among(table: Table, search: Bm25 | TextMatch, fragments: tuple[int, ...]) -> pa.Table | None:
    """Ids and scores of the rows of some fragments that a search finds; None for the search of null. Only where the
    column's index tells the scores of single fragments (`is_spread`).
    """
    text = text_of(search.query)
    if table.reader is None or text is None:
        return None
    return fragment_hits(table.reader, (search.column.name, text, _edits(search)), fragments)


def _edits(search: Bm25 | TextMatch) -> int | None:
    if isinstance(search, TextMatch) and search.form is TextForm.FUZZY:
        return edits_of(search.max_edits)
    return None


def text_scores(table: Table, search: Bm25 | TextMatch, positions: Positions) -> Scores:
    """Full-text scores of rows for the query of a search."""
    return _hits(table, search.column, search.query, None).of(positions)


def _hits(table: Table, column: Column, query: Operand, edits: int | None) -> Hits:
    text = text_of(query)
    if table.reader is None or text is None:
        return Hits(np.empty(0, dtype=np.int64), np.empty(0))
    return text_hits(table.reader, column.name, text, edits)


def query_vector(column: Column, query: Operand) -> npt.NDArray[np.float32] | None:
    """The vector that rows are compared with (`float32[dimension]`, the width of stored ones); None for null."""
    values = vector_of(column, query)
    return None if values is None else np.array(values, dtype=np.float32)


def distances(vectors: pa.Array, query: npt.NDArray[np.float32]) -> Scores:
    """Squared Euclidean distance of each vector to the query; NaN for a null vector."""
    count, width = len(vectors), len(query)
    found = np.full(count, np.nan)
    if pa.types.is_null(vectors.type) or not count:
        return found
    flat = vectors.values.slice(vectors.offset * width, count * width).fill_null(float("nan"))
    stored = flat.to_numpy(zero_copy_only=False).reshape(count, width)
    wanted = query.astype(np.float64)
    run = max(1, _RUN // width)
    for start in range(0, count, run):
        apart = stored[start : start + run].astype(np.float64) - wanted
        found[start : start + run] = np.einsum("ij,ij->i", apart, apart)
    found[~np.asarray(vectors.is_valid())] = np.nan
    return found

"""Which stored vectors are the answers to the texts beside them: told by their numbers, whoever wrote them and however
often a text went and came back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from spark_omnigraph.storage.vectors import Answers, Rows, numbers_of

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Compared:
    """Which rows have a vector, and of which it is the answer to their text; of the others a digest of it, where
    somebody wants to know.
    """

    has_vector: Bools
    is_fresh: Bools
    digests: npt.NDArray[np.object_]

    @property
    def is_other(self) -> Bools:
        """Rows with another vector than the answer to their text."""
        return self.has_vector & ~self.is_fresh

    def marks(self, keys: pa.Array) -> pa.Array:
        """What the ledger calls a vector beside a text: the name of the answer to the text, and the digest."""
        return pc.binary_join_element_wise(keys, pa.array(self.digests, pa.string()), "")

    def is_answer(self, answers: Answers) -> Bools:
        """Whether what a row has is the answer to any text at all."""
        wanted = set(self.digests[self.is_other])
        known: set[str] = set()
        for vectors in answers.all() if wanted else ():
            known |= wanted.intersection(map(_digest, _bits(vectors)))
        return np.array([each in known for each in self.digests], dtype=bool)


def compare(rows: pa.Table, answers: Answers, vectors: Iterable[pa.RecordBatch], with_digests: bool) -> Compared:
    """Compares rows (`row`, `key`) with their vectors, in batches (vector, `_rowid`) with those of others."""
    ids = np.asarray(rows.column("row"))
    order = np.argsort(ids, kind="stable")
    has, fresh, digests = np.zeros(len(ids), bool), np.zeros(len(ids), bool), np.full(len(ids), None)
    if len(ids):
        found, reader = answers.find(rows.column("key").combine_chunks()), answers.reader()
        for batch in vectors:
            there = batch.filter(batch.column(0).is_valid())
            owners = np.asarray(there.column("_rowid"))
            at = order[np.minimum(np.searchsorted(ids, owners, sorter=order), len(ids) - 1)]
            meant = ids[at] == owners
            at, given = at[meant], _bits(there.column(0))[meant]
            has[at] = True
            fresh[at] = _are_answers(given, found[at], reader.take(found[at]))
            if with_digests:
                digests[at] = [_digest(each) for each in given]
    return Compared(has, fresh, digests)


def _are_answers(given: npt.NDArray[np.uint32], found: Rows, answers: pa.Array) -> Bools:
    same = found >= 0
    same[same] = (given[same] == _bits(answers.drop_null())).all(axis=1)
    return same


def _bits(vectors: pa.Array) -> npt.NDArray[np.uint32]:
    return numbers_of(vectors).view(np.uint32)


def _digest(bits: npt.NDArray[np.uint32]) -> str:
    return sha256(bits.tobytes()).hexdigest()

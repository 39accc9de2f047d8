"""What Spark carries to its workers: one whose Python lacks a package says which one, where, and the way out.

Spark unpickles a reader or a writer before any code of ours runs there. So they travel as bytes with a function that
opens them; Spark's pickler takes it along by value, and it names nothing of this package.
"""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import cloudpickle

from spark_omnigraph.errors import InternalError
from spark_omnigraph.spark.early_end import expect_early_ends
from spark_omnigraph.spark.errors import encode, missing_package

expect_early_ends()  # the first thing that a worker imports of this package

_MODULE, _HOST, _PYTHON = "{module}", "{host}", "{python}"


class Portable:
    """Mixed into classes whose instances Spark carries; what they hold must be picklable."""

    def __reduce__(self) -> tuple[Callable[[bytes], object], tuple[bytes]]:
        return _opener(), (cloudpickle.dumps((type(self), self.__dict__)),)


class TaskBody(Portable):
    """What tasks do with the batches of their partition."""

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows that come of them."""
        raise InternalError(f"{type(self).__name__} does not say what it does")


def carried(body: TaskBody) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """A body as `mapInArrow` takes it: a function that is pickled by value."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return body.run(batches)

    return run


def _opener() -> Callable[[bytes], object]:
    text = encode(missing_package(_MODULE, _HOST, _PYTHON))
    names = _MODULE, _HOST, _PYTHON

    def open_here(packed: bytes) -> object:
        try:
            kind, state = pickle.loads(packed)
        except ModuleNotFoundError as error:
            said = text
            for name, value in zip(names, (error.name or str(error), socket.gethostname(), sys.executable)):
                said = said.replace(name, value)
            raise RuntimeError(said) from error
        found = object.__new__(kind)
        found.__dict__.update(state)
        return found

    return open_here

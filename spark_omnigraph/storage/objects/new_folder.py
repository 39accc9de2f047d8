"""A folder that Spark makes and fills: none stands there before, and none does when the work fails."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from spark_omnigraph.errors import BadRequestError, StorageError
from spark_omnigraph.storage.objects.files import split_s3
from spark_omnigraph.storage.objects.small import Objects
from spark_omnigraph.storage.uri import locate, plain

_OF_SPARK = re.compile(r"\.?(?:part-|_)")
"""How the names begin that Spark makes in a folder which it writes; only these are removed."""


class NewFolder:
    """A folder on this machine or below `s3://`. Of an object store only objects are seen, not what Hadoop puts there
    to stand for an empty folder.
    """

    def __init__(self, path: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._place = plain(path).rstrip("/")
        self._options = storage_options or {}
        self._is_ours = False

    def refuse_other(self) -> None:
        """BadRequestError where something is there already. A store that does not say is left to Spark."""
        with suppress(StorageError):
            if self._is_there():
                raise BadRequestError(f"'{self.path}' is there already: Spark writes a new folder of files")

    def claim(self) -> None:
        """From now on what Spark makes is this run's. Raises as `refuse_other`."""
        self.refuse_other()
        self._is_ours = True

    def give_up(self) -> None:
        """Somebody else made it in between."""
        self._is_ours = False

    def remove(self) -> None:
        """Removes what Spark made since `claim`, as far as it can. Files of other names stay, and the folder then."""
        if not self._is_ours:
            return
        if "://" in self._place:
            with suppress(StorageError):
                objects, key = self._objects()
                names = [path for path in self._below() if _OF_SPARK.match(path[len(key) + 1 :])]
                objects.delete_all(names)
            return
        with suppress(OSError):
            for made in Path(self._place).iterdir():
                if _OF_SPARK.match(made.name):
                    shutil.rmtree(made, ignore_errors=True) if made.is_dir() else made.unlink(missing_ok=True)
            os.rmdir(self._place)

    def _is_there(self) -> bool:
        return bool(self._below()) if "://" in self._place else os.path.lexists(self._place)

    def _below(self) -> list[str]:
        objects, key = self._objects()
        return [each.path for each in objects.walk(key) if each.path.startswith(f"{key}/")]

    def _objects(self) -> tuple[Objects, str]:
        bucket, key = split_s3(self._place)
        return Objects(locate(bucket, self._options)), key

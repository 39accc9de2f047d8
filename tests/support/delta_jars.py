"""The two jars that make a Spark session know Delta, fetched once, and a session with them.

`python -m tests.support.delta_jars` fetches them over HTTPS from where Spark itself looks for packages, and checks
their digests. Where nothing answers, tests of Delta on Spark are skipped; those of `deltalake` need no jar.
"""

from __future__ import annotations

import os
import re
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import urlopen
from zipfile import ZipFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOLDER = Path(os.environ.get("OMNIGRAPH_DELTA_JARS", Path(__file__).parents[2] / "build" / "delta-jars"))
VERSION = "4.4.0"
DIGESTS = {
    "delta-spark_4.2_2.13": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "delta-storage": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
}
_WAIT = 60.0


def delta_jars() -> list[Path] | None:
    """The jars, if they are here and whole."""
    found = [FOLDER / f"{name}-{VERSION}.jar" for name in DIGESTS]
    whole = (path.is_file() and _digest(path.read_bytes()) == known for path, known in zip(found, DIGESTS.values()))
    return found if all(whole) else None


def fetch() -> list[Path] | None:
    """The jars, fetched if need be; None, and a line that says why, where they cannot be had."""
    if (there := delta_jars()) is not None:
        return there
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, known in DIGESTS.items():
        try:
            with urlopen(f"{_repository()}io/delta/{name}/{VERSION}/{name}-{VERSION}.jar", timeout=_WAIT) as answer:
                content = answer.read()
        except (URLError, OSError) as error:
            print(f"no jars of Delta: {name}: {error}", file=sys.stderr)
            return None
        if _digest(content) != known:
            print(f"no jars of Delta: {name} has another digest", file=sys.stderr)
            return None
        (FOLDER / f"{name}-{VERSION}.jar").write_bytes(content)
    return delta_jars()


def delta_session() -> SparkSession:
    """A classic session of its own that knows Delta. The process must not have had another one."""
    from spark_omnigraph.spark.session import local_session  # noqa: PLC0415 - needs Java

    jars = delta_jars()
    assert jars is not None
    return local_session("delta", 2, settings(jars))


def settings(jars: list[Path]) -> dict[str, str]:
    """What a session needs beside the jars, and what makes it fast on small tables."""
    return {
        "spark.jars": ",".join(map(str, jars)),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.shuffle.partitions": "2",
    }


def _repository() -> str:
    """The address that Spark's own resolver of packages has in its code."""
    import pyspark  # noqa: PLC0415 - for its folder alone

    (jar,) = Path(pyspark.__file__).parent.glob("jars/ivy-2*.jar")
    with ZipFile(jar) as archive:
        code = archive.read("org/apache/ivy/plugins/resolver/IBiblioResolver.class")
    found = re.search(rb"https://[a-z0-9./]+/maven2/", code)
    assert found is not None
    return found.group().decode()


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


if __name__ == "__main__":
    sys.exit(0 if fetch() is not None else 1)

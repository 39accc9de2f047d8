"""Ways in which the package reaches the workers, with `spark-submit` and processes that have it from nowhere else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from spark_omnigraph import Graph
from spark_omnigraph.spark.java import ensure_java

ROOT = Path(__file__).parents[2]
SPARK = Path(pyspark.__file__).parent
PACKAGES = ("spark_omnigraph", "pyspark_omnigraph")
CONF = (
    "spark.ui.enabled=false",
    "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
)
PROGRAM = """
import json, sys
import spark_omnigraph
from pyspark.sql import SparkSession

uri, report = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
spark_omnigraph.register(spark)
people = spark.read.format("omnigraph").option("node", "Person").load(uri)
read = sorted(row["name"] for row in people.collect())
more = people.selectExpr("concat(name, '!') as name")
more.write.format("omnigraph").mode("append").option("node", "Person").save(uri)
place = lambda _: __import__("spark_omnigraph").__file__
found = {"read": read, "driver": spark_omnigraph.__file__,
         "workers": list(spark_omnigraph.SparkExecutor(spark).map(place, [1]))}
with open(report, "w") as file:
    json.dump(found, file)
"""


@dataclass(frozen=True)
class Submit:
    """A folder to run `spark-submit` in, where nothing leads to this checkout."""

    folder: Path
    environ: Mapping[str, str]
    options: Sequence[str]

    def run(self, *arguments: str) -> None:
        conf = [part for setting in CONF for part in ("--conf", setting)]
        command = [str(SPARK / "bin" / "spark-submit"), *self.options, *conf, *arguments]
        ended = subprocess.run(
            command, cwd=self.folder, env=dict(self.environ), capture_output=True, text=True, timeout=400, check=False
        )
        reasons = re.findall(r"^.*(?:ERROR|Error:|Exception|Caused by).*$", ended.stderr, re.MULTILINE)
        assert ended.returncode == 0, "\n".join(reasons[:40])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "in.jsonl").write_text('{"type": "Person", "data": {"name": "Eve"}}\n')
    shutil.copy(ROOT / "jobs" / "ingest.py", tmp_path / "ingest.py")
    graph = Graph.init(tmp_path / "g", "node Person { name: String @key }")
    graph.load(['{"type": "Person", "data": {"name": "Ada"}}'])
    return tmp_path


def environ(python: str, **more: str) -> dict[str, str]:
    ensure_java()
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYSPARK", "SPARK"))}
    pythons = {"PYSPARK_PYTHON": python, "PYSPARK_DRIVER_PYTHON": python}
    return {**kept, **pythons, "SPARK_LOCAL_IP": "127.0.0.1", **more}


def package_files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (file for file in sorted((ROOT / package).rglob("*")) if file.is_file() and file.suffix != ".pyc")


def zipped(target: Path) -> Path:
    """What a wheel of this package holds, under a name that Spark takes."""
    with zipfile.ZipFile(target, "w") as archive:
        for file in package_files():
            archive.write(file, file.relative_to(ROOT))
    return target


def packed_environment(folder: Path) -> Path:
    """An environment as venv-pack packs it. It has this package itself; what others made it finds where tests do."""
    place = folder / "environment"
    venv.create(place, symlinks=True)
    library = place / Path(sysconfig.get_path("purelib", vars={"base": ""})).relative_to("/")
    assert library.is_dir()
    for package in PACKAGES:
        shutil.copytree(ROOT / package, library / package, ignore=shutil.ignore_patterns("__pycache__"))
    (library / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    with tarfile.open(folder / "environment.tar.gz", "w:gz") as archive:
        for file in sorted(place.iterdir()):
            archive.add(file, file.name)
    return place


def spark_home(folder: Path) -> Path:
    """Spark's folder by links: a local cluster works in a folder of its home, which others use too."""
    home = folder / "spark"
    home.mkdir()
    for file in (entry for entry in SPARK.iterdir() if entry.name != "work"):
        (home / file.name).symlink_to(file)
    return home


def test_the_package_works_out_of_a_zip_file(tmp_path: Path) -> None:
    """Its own files too: grammars, templates and settings are not found by path."""
    program = (
        "import spark_omnigraph as s, pyspark_omnigraph as p, sys; from spark_omnigraph.cli import main;"
        'g = s.Graph.init(sys.argv[2], \'node A { k: String @key }\'); g.load([\'{"type": "A", "data": {"k": "x"}}\']);'
        "assert g.query('query q() { match { $a: A } return { $a.k } }').to_pylist() == [{'a.k': 'x'}];"
        "assert main(['describe', '--graph', sys.argv[2]]) == 0;"
        "assert all(m.__file__.startswith(sys.argv[1]) for m in (s, p))"
    )
    file = zipped(tmp_path / "omnigraph.zip")
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); {program}", str(file)]
    ended = subprocess.run(
        [*command, str(tmp_path / "g")],
        cwd=tmp_path,
        env=environ(sys.executable),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.classic  # spark-submit starts a JVM of its own
def test_py_files_read_write_and_run_jobs(folder: Path) -> None:
    file = zipped(folder / "omnigraph.zip")
    submit = Submit(folder, environ(sys.executable), ["--master", "local[2]", "--py-files", str(file)])
    check(submit, "omnigraph.zip")


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.classic  # spark-submit starts a JVM of its own
def test_archives_read_write_and_run_jobs(folder: Path) -> None:
    """Executors are processes of their own, in folders of their own, where the archive is all they get."""
    place = packed_environment(folder)
    home = spark_home(folder)
    python = environ(
        "./environment/bin/python", PYSPARK_DRIVER_PYTHON=str(place / "bin" / "python"), SPARK_HOME=str(home)
    )
    options = ["--master", "local-cluster[1,1,700]", "--conf", "spark.executor.memory=700m"]
    submit = Submit(folder, python, [*options, "--archives", f"{folder}/environment.tar.gz#environment"])
    check(submit, str(home / "work"))


def check(submit: Submit, workers_place: str) -> None:
    """Reading and writing of frames, and a job; the workers import the package from `workers_place`."""
    uri, report = str(submit.folder / "g"), submit.folder / "report.json"
    submit.run("program.py", uri, str(report))
    found = json.loads(report.read_text())
    assert found["read"] == ["Ada"]
    assert all(workers_place in file for file in found["workers"])
    assert str(ROOT) not in found["driver"]
    submit.run("ingest.py", "--graph", uri, "--input", str(submit.folder / "in.jsonl"), "--executor", "spark")
    names = sorted(json.loads(line)["data"]["name"] for line in Graph.open(uri).export())
    assert names == ["Ada", "Ada!", "Eve"]

"""The files in jobs/ under a real spark-submit: same arguments, same summary, same exit codes as the program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyspark
import pytest

from spark_omnigraph import Graph
from spark_omnigraph.spark.java import ensure_java
from tests.support.short_jvm import SHORT_LIVED

ROOT = Path(__file__).parents[3]
SUBMIT = Path(pyspark.__file__).parent / "bin" / "spark-submit"
SCHEMA = "node Person { name: String @key  age: I32?  @range(age, 0..150) }\nedge Knows: Person -> Person"


def submit(folder: Path, job: str, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, summary, and standard output of a job run by spark-submit on two cores.

    Spark passes a driver's standard error on to its standard output.
    """
    environ = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    ensure_java(environ)
    spark = [str(SUBMIT), "--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    spark += ["--driver-java-options", SHORT_LIVED, "--conf", "spark.sql.shuffle.partitions=2"]
    command = [*spark, str(ROOT / "jobs" / job), *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=280, check=False)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout.splitlines()[-1]), done.stdout


@pytest.mark.spark
def test_a_load_on_spark_and_a_refused_one(tmp_path: Path) -> None:
    graph = Graph.init(tmp_path / "g", SCHEMA)
    lines = [json.dumps({"type": "Person", "data": {"name": f"p{n}", "age": n % 100}}) for n in range(500)]
    lines += [json.dumps({"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"}) for n in range(499)]
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    (tmp_path / "job.yaml").write_text("graph: g\nexecutor: spark\nactor: scheduler\n")

    code, summary, _ = submit(tmp_path, "ingest.py", "--config", "job.yaml", "--input", "in.jsonl", "--branch", "dev")
    assert (code, summary["status"], summary["result"]["executor"]) == (0, "done", "spark")
    assert summary["tables"]["node:Person"]["inserted"] == 500
    assert summary["tables"]["edge:Knows"]["inserted"] == 499
    assert graph.count("edge:Knows", branch="dev") == 499
    assert graph.count("edge:Knows") == 0
    assert graph.commits(branch="dev")[0].actor == "scheduler"

    (tmp_path / "in.jsonl").write_text(lines[0].replace('"age": 0', '"age": 200'))
    code, summary, out = submit(tmp_path, "merge.py", "--config", "job.yaml", "--input", "in.jsonl", "--branch", "dev")
    assert (code, summary["status"]) == (3, "refused")
    assert summary["bad_rows"] == {"total": 1, "per_rule": {"range": 1}, "report": None}
    assert "in.jsonl:1: Person.age: range" in out

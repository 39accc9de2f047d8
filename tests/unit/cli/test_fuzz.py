"""Whatever stands in arguments, files and environment: an exit code of the documentation, no traceback, soon.

A failure prints its example and the seed to play it again (`--hypothesis-seed`).
"""

from __future__ import annotations

import io
import json
import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from spark_omnigraph.cli.program import run
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.cli.verb import Job, Verb, VerbOutcome
from spark_omnigraph.graph.handle import Graph

CODES = {0, 1, 2, 3, 4, 5, 6}
SECONDS = 2.0
MEMORY = 256 << 20
DEEP = '{"a":' * 100_000
TEXTS = st.one_of(
    st.text(max_size=20),
    st.text(st.characters(categories=["Cs", "Cc", "Cf"]), max_size=5),
    st.sampled_from([
        "", "g", ".", "/", "-", "--", "=", "true", "0", "-1", "9" * 400 + "TB", "9" * 20_000, "1e99", "٣", "1e5%",
        "nan%", "\0", "a\0b", "\ud800", "\udcff", "s3://", "s3://k:s@b/x", "s3://b", "file://", "file://h/x", "zz:/x",
        "~", "/dev/null", "/dev/zero", "pipe", "folder", "q.gq", "s.pg", "in.jsonl", "*", "**", "[", "x" * 300,
        "x" * 5000, DEEP, "[" * 100_000, "{}", '{"a": 1e999}', '{"a": ' + "1" * 5000 + "}", "actor=", "actor=\x1b[0m",
        "2024-99-99", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "1" * 30, "main", "aws_region=x",
    ]),
)  # laid out as a table  # fmt: skip
FLAGS = sorted({option.flag_name for verb in VERBS.values() for option in verb.all_options})
YAMLS = st.one_of(
    st.text(max_size=200),
    st.binary(max_size=200),
    st.dictionaries(st.sampled_from(["graph", "branch", "actor", "params", "limit", "input", "nope"]), TEXTS).map(
        lambda keys: json.dumps(keys, ensure_ascii=True)
    ),
    st.sampled_from([
        "[" * 30_000, "{a: " * 9000, "- " * 30_000, "limit: " + "9" * 20_000, "as_of: 2024-99-99",
        "limit: 0x" + "f" * 20_000,
        "a: &a [*a]", "graph: !!python/object:os.system x", "graph: !!binary x", "? [1]\n: 2", "\ufeffgraph: g",
        "a0: &a0 {x: 1}\n" + "\n".join(f"a{i + 1}: &a{i + 1} {{<<: [*a{i}, *a{i}]}}" for i in range(24)),
        "graph: g\nparams: {a: {b: 1}}", "x" * 200_000, "\n".join(f"k{i}: 1" for i in range(9000)),
        "9" * 20_000 + ": 1",
    ]),
)  # laid out as a table  # fmt: skip
WORDS = st.lists(st.one_of(TEXTS, st.sampled_from(FLAGS), st.builds("{}={}".format, st.sampled_from(FLAGS), TEXTS)))
VARIABLES = st.dictionaries(
    st.sampled_from(sorted({o.env_name for verb in VERBS.values() for o in verb.all_options if o.env})), TEXTS
)


def _checked(_job: Job) -> VerbOutcome:
    """What stands for the work of a verb: its arguments passed every check."""
    return VerbOutcome()


HOLLOW = {
    name: Verb(v.name, v.help, v.example, _checked, v.options, v.common, v.fixed, v.has_rows)
    for name, v in VERBS.items()
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("fuzz")
    before = Path.cwd()
    os.chdir(root)
    Graph.init("g", "node T { k: String @key }").load(['{"type":"T","data":{"k":"a"}}'])
    (root / "s.pg").write_text("node T { k: String @key }")
    (root / "q.gq").write_text("query q($a: I64?) { match { $t: T } return { $t.k } }")
    (root / "in.jsonl").write_text('{"type":"T","data":{"k":"b"}}\n')
    (root / "folder").mkdir()
    os.mkfifo("pipe")
    yield root
    os.chdir(before)


class _Captured:
    """Both streams of the program, in memory, with encodings as strict as a process has them."""

    def __enter__(self) -> _Captured:
        self._before = sys.stdout, sys.stderr
        self.raw = io.BytesIO(), io.BytesIO()
        self.streams = (
            io.TextIOWrapper(self.raw[0], encoding="utf-8"),
            io.TextIOWrapper(self.raw[1], encoding="utf-8", errors="backslashreplace"),
        )
        sys.stdout, sys.stderr = self.streams
        return self

    def __exit__(self, *_error: object) -> None:
        for stream in self.streams:
            stream.flush()
        sys.stdout, sys.stderr = self._before
        self.out, self.err = (raw.getvalue().decode() for raw in self.raw)


def play(words: list[str], environ: dict[str, str], verbs: dict[str, Verb]) -> None:
    started = time.process_time()
    with _Captured() as captured:
        code = run(words, environ, verbs)
    seconds = time.process_time() - started
    said = f"exit code {code}, {seconds:.2f} s, standard error: {captured.err[-500:]}"
    assert code in CODES, said
    assert "Traceback" not in captured.err
    assert seconds < SECONDS
    if "--help" not in words and "-h" not in words:
        # Of verbs with rows the summary stands beside them, unless the rows go to a file.
        last = (captured.out or captured.err).splitlines()[-1]
        assert json.loads(last)["exit_code"] == code


def fuzz(place: Path, verb: str, words: list[str], environ: dict[str, str], yaml_text: str | bytes | None) -> None:
    """One command; files that the arguments may have named to write are put back by name."""
    given = [*verb.split(), *words]
    if yaml_text is not None:
        content = yaml_text.encode("utf-8", "surrogatepass") if isinstance(yaml_text, str) else yaml_text
        (place / "job.yaml").write_bytes(content)
        given += ["--config", "job.yaml"]
    play(given, environ, HOLLOW)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=True,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module", autouse=True)
def bounded(place: Path) -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10 < MEMORY


@_settings(50)
@given(
    verb=st.sampled_from([*VERBS, "", "branch", "qury"]), words=WORDS, environ=VARIABLES, yaml_text=st.none() | YAMLS
)
def test_any_words_files_and_variables(
    place: Path, verb: str, words: list[str], environ: dict[str, str], yaml_text: str | bytes | None
) -> None:
    fuzz(place, verb, words, environ, yaml_text)


@pytest.mark.long
@_settings(2000)
@given(
    verb=st.sampled_from([*VERBS, "", "branch", "qury"]), words=WORDS, environ=VARIABLES, yaml_text=st.none() | YAMLS
)
def test_any_words_files_and_variables_at_length(
    place: Path, verb: str, words: list[str], environ: dict[str, str], yaml_text: str | bytes | None
) -> None:
    fuzz(place, verb, words, environ, yaml_text)


BASE = {
    "query": ["--graph", "g", "--file", "q.gq"],
    "ingest": ["--graph", "g", "--input", "in.jsonl"],
    "commits": ["--graph", "g"],
}


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("query", ["--params", DEEP]),
        ("query", ["--params", '{"a": ' + "1" * 5000 + "}"]),
        ("query", ["--params", '{"a": ' + "1" * 30 + "}"]),
        ("query", ["--version", "9" * 20_000]),
        ("query", ["--version", "9" * 18]),
        ("query", ["--output", "a\0b"]),
        ("ingest", ["--spark-threshold", "9" * 400 + "TB"]),
        ("ingest", ["--max-bad-rows", "9" * 5000]),
        ("ingest", ["--input", "x\0"]),
        ("ingest", ["--actor", "\ud800"]),
        ("ingest", ["--actor", os.fsdecode(b"\xff")]),
        ("commits", ["--limit", "9" * 5000]),
        ("commits", ["--config", "pipe"]),
        ("commits", ["--config", "/dev/zero"]),
        ("commits", ["--branch", "\x1b[31m"]),
        ("commits", ["--graph", "g\0"]),
    ],
)
def test_words_that_used_to_raise(verb: str, words: list[str], place: Path) -> None:
    play([verb, *BASE[verb], *words], {}, VERBS)


@pytest.mark.parametrize("text", ["[" * 30_000, "limit: " + "9" * 20_000, "limit: 2024-99-99", "x: 0x" + "f" * 20_000])
def test_files_that_used_to_raise(text: str, place: Path) -> None:
    (place / "job.yaml").write_text(text)
    play(["commits", "--graph", "g", "--config", "job.yaml"], {}, VERBS)

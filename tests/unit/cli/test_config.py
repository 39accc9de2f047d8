from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from spark_omnigraph.cli.config import JobConfig, resolve, salvage
from spark_omnigraph.cli.options import COMMON, Option
from spark_omnigraph.cli.program import main
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.cli.request import Request
from spark_omnigraph.errors import UsageError
from spark_omnigraph.records.mode import LoadMode, Nulls, OnMissing


def request(verb: str = "ingest") -> Request:
    found = VERBS[verb]
    return Request(found.name, found.all_options, found.fixed, {v.name: v.all_options for v in VERBS.values()})


def written(folder: Path, text: str) -> str:
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


NEEDED = {"graph": ["g"], "input": ["a.jsonl", "b.jsonl"]}


def test_arguments_win_over_file_and_file_over_environment(tmp_path: Path) -> None:
    path = written(tmp_path, "graph: from-file\nactor: from-file\nmax_bad_rows: 7\n")
    environ = {"OMNIGRAPH_GRAPH": "from-env", "OMNIGRAPH_ACTOR": "from-env", "OMNIGRAPH_BRANCH": "from-env"}
    config = resolve(request(), {"graph": ["from-arg"], "input": ["x"], "config": [path]}, environ)
    assert (config.graph, config.actor, config.branch) == ("from-arg", "from-file", "from-env")
    assert config.max_bad_rows == 7
    assert config.mode is LoadMode.APPEND


def test_defaults_of_the_options_are_those_of_the_configuration() -> None:
    """What help shows as the default is what a verb gets that was told nothing."""
    fields = {field.name: field for field in dataclasses.fields(JobConfig)}
    options = {option.key: option for verb in VERBS.values() for option in verb.all_options}
    for key, option in options.items():
        default = fields[key].default
        if option.default is None:
            assert default in (None, "", (), dataclasses.MISSING), key
        else:
            assert option.parse(option.default) == default, key


def test_every_field_has_an_option() -> None:
    keys = {option.key for verb in VERBS.values() for option in verb.all_options}
    assert {field.name for field in dataclasses.fields(JobConfig)} == keys | {"verb"}


def test_all_mistakes_are_reported_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, "brnch: x\nmax_bad_rows: lots\nschemata: x.pg\ninput: {a: b}\n")
    environ = {"OMNIGRAPH_LOAD_CONCURRENCY": "0"}
    with pytest.raises(UsageError) as caught:
        resolve(request(), {"config": [path], "mode": ["apend"]}, environ, ["unknown option --foo"])
    lines = caught.value.message.splitlines()
    assert lines[0] == "8 mistakes:"
    text = "\n".join(lines[1:])
    assert "unknown option --foo" in text
    assert f"unknown key 'brnch' in {path}; did you mean 'branch'?" in text
    assert f"unknown key 'schemata' in {path}; did you mean 'schema'?" in text
    assert "keys of ingest: actor, adopt_edges, bad_rows, base, blob_schemes, branch," in text
    assert f"--max-bad-rows: 'lots' is neither a number of rows nor a share such as 5% or 0.05 (from {path})" in text
    assert "--mode: 'apend' is not one of append, merge, update, overwrite, changes" in text
    assert "--load-concurrency: '0' is not a whole number of at least 1 (from the environment)" in text
    assert f"'input' in {path} must be a value or a list of values" in text
    assert "--graph is required" in text


def test_a_shared_file_may_hold_common_keys_that_the_verb_lacks(tmp_path: Path) -> None:
    path = written(tmp_path, "graph: g\nbranch: nightly\nactor: etl\n")
    config = resolve(request("branch list"), {"config": [path]}, {})
    assert config.graph == "g"
    assert config.branch == "main"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("input: a.jsonl", ("a.jsonl",)),
        ("input: [a.jsonl, 2026-01-31]", ("a.jsonl", "2026-01-31")),
        ("input:\n", ()),
        ("input: []\n", ()),
    ],
)
def test_input_in_a_file(tmp_path: Path, text: str, expected: tuple[str, ...]) -> None:
    path = written(tmp_path, text)
    if expected:
        assert resolve(request(), {"graph": ["g"], "config": [path]}, {}).input == expected
    else:
        with pytest.raises(UsageError, match="--input is required without --mapping"):
            resolve(request(), {"graph": ["g"], "config": [path]}, {})


def test_what_is_enough_in_the_place_of_an_option_has_the_name_that_it_has_there() -> None:
    with pytest.raises(UsageError, match="--schema is required without --from"):
        resolve(request("init"), {"graph": ["g"]}, {})


def test_switches_of_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "dry_run: true\nindex: false\n")
    config = resolve(request(), {**NEEDED, "config": [path]}, {})
    assert (config.dry_run, config.index) == (True, False)
    config = resolve(request(), {**NEEDED, "config": [path], "dry_run": ["false"]}, {})
    assert (config.dry_run, config.index) == (False, False)


def test_storage_options_of_all_sources_together(tmp_path: Path) -> None:
    path = written(tmp_path, "storage_options: {aws_region: from-file, allow_http: true}\n")
    environ = {"OMNIGRAPH_STORAGE_OPTIONS": "aws_region=from-env,aws_bucket=from-env"}
    arguments = {**NEEDED, "config": [path], "storage_options": ["aws_endpoint=from-arg"]}
    assert resolve(request(), arguments, environ).storage_options == {
        "aws_region": "from-file",
        "allow_http": "true",
        "aws_bucket": "from-env",
        "aws_endpoint": "from-arg",
    }


def test_secrets_of_a_file_are_refused_and_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path, "storage_options:\n  aws_secret_access_key: hunter2\n")
    with pytest.raises(UsageError, match="names a secret") as caught:
        resolve(request(), {**NEEDED, "config": [path]}, {})
    assert "hunter2" not in caught.value.message


def test_storage_options_are_not_in_the_text_of_a_configuration() -> None:
    assert "hunter2" not in repr(JobConfig(verb="ingest", storage_options={"x": "hunter2"}))


@pytest.mark.parametrize(
    ("content", "message"),
    [("- a\n- b\n", "must hold keys and values"), ("a: [", "is not YAML"), ("a: b: c", "is not YAML")],
)
def test_files_that_are_no_configuration(tmp_path: Path, content: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        resolve(request(), {**NEEDED, "config": [written(tmp_path, content)]}, {})


def test_a_missing_file_is_a_mistake_among_the_others() -> None:
    with pytest.raises(UsageError, match=r"(?s)there is no file '/nowhere/job.yaml'.*--graph is required"):
        resolve(request(), {"input": ["x"], "config": ["/nowhere/job.yaml"]}, {})


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert resolve(request(), {**NEEDED, "config": [written(tmp_path, "# nothing\n")]}, {}).graph == "g"


def test_a_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    path = written(tmp_path, "actor: etl\n")
    assert resolve(request(), NEEDED, {"OMNIGRAPH_CONFIG": path}).actor == "etl"


@pytest.mark.parametrize(
    ("mode", "others"),
    [
        (LoadMode.MERGE, {"max_deletes", "missing_rows", "nulls"}),
        (LoadMode.UPDATE, {"max_deletes", "edge_id", "adopt_edges"}),
        (LoadMode.OVERWRITE, {"max_deletes", "missing_rows", "nulls"}),
        (LoadMode.CHANGES, {"missing_rows", "nulls"}),
    ],
)
def test_verbs_named_after_a_mode_are_ingest_with_that_mode(mode: LoadMode, others: set[str]) -> None:
    assert resolve(request(str(mode)), NEEDED, {}).mode is mode
    assert {option.key for option in VERBS[str(mode)].all_options} == {
        option.key for option in VERBS["ingest"].all_options
    } - {"mode", *others}


def test_options_of_patches_go_with_update_alone() -> None:
    given = {**NEEDED, "missing_rows": ["insert"], "nulls": ["keep"]}
    config = resolve(request("update"), given, {})
    assert (config.missing_rows, config.nulls) == (OnMissing.INSERT, Nulls.KEEP)
    assert resolve(request("ingest"), {**given, "mode": ["update"]}, {}).nulls is Nulls.KEEP
    with pytest.raises(UsageError, match="--missing is of patches: it goes with mode update alone") as caught:
        resolve(request("ingest"), {**given, "mode": ["merge"]}, {})
    assert "--nulls is of patches" in str(caught.value)


def test_salvage_keeps_what_the_report_needs_of_wrong_arguments() -> None:
    config = salvage(request(), {"graph": ["g"], "summary": ["s.json"], "log_format": ["xml"], "mode": ["apend"]})
    assert (config.verb, config.graph, config.summary, config.log_format) == ("ingest", "g", "s.json", "text")


def test_common_options_are_those_that_jobs_share() -> None:
    assert [option.key for option in COMMON] == [
        "graph",
        "branch",
        "actor",
        "meta",
        "executor",
        "dry_run",
        "storage_options",
        "report",
        "config",
        "summary",
        "metrics",
        "log_format",
        "log_level",
        "progress",
    ]


def test_an_option_knows_its_names() -> None:
    option = Option("bad_rows", "help")
    assert (option.flag_name, option.env_name, option.shown_name) == ("--bad-rows", "OMNIGRAPH_BAD_ROWS", "--bad-rows")


SHARED = """
graph: g
input: [a.jsonl]
max_bad_rows: 7
index: false
merge: {max_bad_rows: 0, storage_options: {aws_region: here}}
branch create: {name: review}
storage_options: {aws_region: there, allow_http: true}
"""


def test_one_file_serves_several_verbs(tmp_path: Path) -> None:
    given = {"config": [written(tmp_path, SHARED)]}
    ingest, merge, create = (resolve(request(verb), given, {}) for verb in ("ingest", "merge", "branch create"))
    assert (ingest.graph, ingest.input, ingest.max_bad_rows, ingest.index) == ("g", ("a.jsonl",), 7, False)
    assert (merge.input, merge.max_bad_rows, merge.mode) == (("a.jsonl",), 0, LoadMode.MERGE)
    assert ingest.storage_options == {"aws_region": "there", "allow_http": "true"}
    assert merge.storage_options == {"aws_region": "here", "allow_http": "true"}
    assert (create.graph, create.name, create.input) == ("g", "review", ())
    assert resolve(request("merge"), {**given, "max_bad_rows": ["3"]}, {}).max_bad_rows == 3


def test_a_verb_named_like_an_option_may_have_a_section(tmp_path: Path) -> None:
    path = written(tmp_path, "graph: g\nindex: {branch: nightly}\n")
    assert resolve(request("index"), {"config": [path]}, {}).branch == "nightly"
    assert resolve(request(), {**NEEDED, "config": [path]}, {}).index is True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "ingset: {mode: merge}",
            "unknown key 'ingset' in PATH; did you mean 'ingest'? (keys of describe: as_of,",
        ),
        (
            "merge: {max_bad_row: 1}",
            "unknown key 'max_bad_row' in section 'merge' of PATH; did you mean 'max_bad_rows'?",
        ),
        (
            "merge: {mode: append}",
            "unknown key 'mode' in section 'merge' of PATH",
        ),
        ("merge: 5", "section 'merge' of PATH must hold keys and values"),
        (
            "describe: {version: x}",
            "a whole number of at least 1 (from section 'describe' of PATH)",
        ),
        ("graph: a\ngraph: b", "--config: 'PATH' is not YAML: the key 'graph' stands twice (line 2, column 1)"),
        ("name: x\nmerge: {}", "'name' in PATH is not for all verbs: put it into a section of a verb"),
    ],
)
def test_mistakes_in_sections(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as caught:
        resolve(request("describe"), {"graph": ["g"], "config": [path]}, {})
    assert message.replace("PATH", path) in caught.value.message


def test_what_the_verb_decides_itself_is_no_key_of_it(tmp_path: Path) -> None:
    path = written(tmp_path, "merge: {mode: append}")
    with pytest.raises(UsageError) as caught:
        resolve(request("merge"), {**NEEDED, "config": [path]}, {})
    assert f"unknown key 'mode' in section 'merge' of {path}; merge is what decides it: leave it out" in (
        caught.value.message
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["init", "--graph", "g", "--schema", "flims.pg"],
         "--schema: there is no file 'flims.pg'; did you mean 'films.pg'?"),
        (["lint", "flims.gq", "--schema", "films.pg"], "there is no file 'flims.gq'; did you mean 'films.gq'?"),
        (["commits", "--graph", "g", "--config", "jop.yaml"],
         "--config: there is no file 'jop.yaml'; did you mean 'job.yaml'?"),
        (["ingest", "--graph", "g", "--input", "in/flims.jsonl"], "did you mean 'in/films.jsonl'?"),
        (["describe", "--graph", "grpah"], "there is no such folder; did you mean '{folder}/graph'?"),
    ],
)  # laid out as a table  # fmt: skip
def test_whatever_is_named_and_not_there_is_not_found(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "graph").mkdir()
    (tmp_path / "in").mkdir()
    for name in ("films.pg", "films.gq", "job.yaml", "in/films.jsonl"):
        (tmp_path / name).touch()
    assert main(words) == 6
    assert said.format(folder=tmp_path) in capsys.readouterr().err
    assert main([*words, "--log-level", "loud"]) == 2


def test_a_file_for_repair_does_not_make_init_drop_a_graph(tmp_path: Path) -> None:
    path = written(tmp_path, "graph: g\nconfirm: true\nforce: true\n")
    (tmp_path / "a.pg").write_text("node A { name: String @key }")
    assert resolve(request("repair"), {"config": [path]}, {}).force is True
    with pytest.raises(UsageError, match=r"'force' in .* is not for all verbs"):
        resolve(request("init"), {"schema": [str(tmp_path / "a.pg")], "config": [path]}, {})


@pytest.mark.parametrize("mistake", ["unknown option --grph; did you mean '--graph'?", "stray 'x': --graph"])
def test_an_option_that_a_mistake_names_is_not_called_missing_too(mistake: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve(request("describe"), {}, {}, [mistake])
    assert caught.value.message == mistake

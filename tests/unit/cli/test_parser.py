from __future__ import annotations

import re
import shlex

import pytest

from spark_omnigraph.cli.parser import build, family, find_verb, overview, split_arguments
from spark_omnigraph.cli.program import main
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.errors import UsageError


def split(*argv: str) -> tuple[dict[str, list[str]], list[str]]:
    verb, rest = find_verb(argv, VERBS)
    return split_arguments(verb, rest, VERBS)


def test_texts_come_as_they_were_given() -> None:
    given, mistakes = split(
        "ingest", "--graph", "g", "--input", "a", "b", "--input=c", "--max-bad-rows", "5%", "--no-index", "--dry-run",
        "--storage-option", "a=1", "--storage-option", "b=2", "--from", "dev",
    )  # laid out as a table  # fmt: skip
    assert mistakes == []
    assert given == {
        "graph": ["g"],
        "input": ["a", "b", "c"],
        "max_bad_rows": ["5%"],
        "index": ["false"],
        "dry_run": ["true"],
        "storage_options": ["a=1", "b=2"],
        "base": ["dev"],
    }


def test_a_switch_whose_own_name_begins_with_no_is_on() -> None:
    assert split("embed", "--no-cache") == ({"no_cache": ["true"]}, [])
    assert split("embed", "--no-no-cache") == ({"no_cache": ["false"]}, [])


def test_verbs_of_two_words() -> None:
    assert split("branch", "create", "dev", "--graph", "g") == ({"name": ["dev"], "graph": ["g"]}, [])
    assert split("branch", "list", "--graph", "g") == ({"graph": ["g"]}, [])


def test_the_words_after_branch_are_told() -> None:
    assert list(family(["branch"], VERBS)) == [name for name in VERBS if name.startswith("branch ")]
    assert family(["bran"], VERBS) == family(["branch", "list"], VERBS) == {}
    for words, said in (
        (["branch"], ""),
        (["branch", "crate", "x"], ", not 'crate'; did you mean 'create'?"),
        (["branch", "--graph", "g"], ""),
    ):
        with pytest.raises(UsageError) as caught:
            find_verb(words, VERBS)
        seconds = ", ".join(name.partition(" ")[2] for name in family(["branch"], VERBS))
        assert caught.value.message == f"'branch' needs one of {seconds} after it{said}"


@pytest.mark.parametrize("words", [["branch", "--help"], ["branch", "-h"], ["help", "branch"]])
def test_branch_has_a_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "  branch create  Makes a branch" in shown
    assert "  ingest" not in shown
    assert "130 interrupted, 143 terminated" in shown


def test_unknown_arguments_are_all_named_with_the_nearest_option() -> None:
    _, mistakes = split("describe", "--grph", "g", "--branch", "b", "--lmit=3", "stray")
    assert len(mistakes) == 2
    assert mistakes[0] == "unknown option --grph; did you mean '--graph'?"
    assert mistakes[1] == "unknown option --lmit; spark-omnigraph help describe lists those of describe"


def test_two_dashes_make_no_option_alike() -> None:
    assert split("mutate", "--graph", "g", "--query", "q.gq")[1] == [
        "unknown option --query; spark-omnigraph help mutate lists those of mutate"
    ]


@pytest.mark.parametrize("name", VERBS)
def test_the_help_of_a_verb_names_options_that_it_has(name: str) -> None:
    options = VERBS[name].all_options
    named = {flag for option in options for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", option.help)}
    assert named <= {option.flag_name for option in options}


def test_a_stray_word_is_a_mistake() -> None:
    assert split("describe", "--graph", "g", "stray")[1] == ["unexpected argument 'stray'"]


def test_a_word_in_place_of_the_graph_is_answered_with_the_option() -> None:
    assert split("describe", "graphs/films")[1] == ["unexpected argument 'graphs/films': the graph is named by --graph"]


@pytest.mark.parametrize("verb", ["lint", "query", "mutate"])
def test_a_file_is_an_option_or_an_argument(verb: str) -> None:
    assert split(verb, "a.gq", "--graph", "g") == ({"file": ["a.gq"], "graph": ["g"]}, [])
    assert split(verb, "--graph", "g", "a.gq") == ({"file": ["a.gq"], "graph": ["g"]}, [])
    assert split(verb, "--file", "a.gq", "--graph", "g") == ({"file": ["a.gq"], "graph": ["g"]}, [])
    given, mistakes = split(verb, "a.gq", "--file", "b.gq")
    assert given == {"file": ["b.gq"]}
    assert mistakes == ["'a.gq' is given besides --file: one of the two is enough"]


def test_arguments_may_stand_around_options() -> None:
    assert split("diff", "main", "--graph", "g", "review")[0] == {
        "before": ["main"],
        "after": ["review"],
        "graph": ["g"],
    }


def test_an_option_of_other_verbs_is_refused_with_their_names() -> None:
    assert split("describe", "--graph", "g", "--executor", "spark")[1] == [
        "unknown option --executor: describe does not take it, ingest, merge, update, overwrite, changes, sync, "
        "query, export, embed, branch merge, schema plan, schema apply, restore, index, optimize do"
    ]
    assert split("query", "--dry-run")[1][0].startswith(
        "unknown option --dry-run: query does not take it, init, ingest,"
    )


def test_common_options_stand_where_they_do_something() -> None:
    """What a run may be told is what its verb looks at."""
    having = {
        key: {name for name, verb in VERBS.items() if any(option.key == key for option in verb.all_options)}
        for key in ("actor", "executor", "dry_run", "branch")
    }
    loads = {"ingest", "merge", "update", "overwrite", "changes", "sync"}
    reads = {"query", "sql", "describe", "commits", "diff", "export", "schema show"}
    assert having == {
        "actor": loads | {"mutate", "embed", "branch merge", "restore", "erase", "optimize", "schema apply"},
        "executor": loads
        | {"query", "export", "embed", "branch merge", "restore", "schema plan", "schema apply", "index", "optimize"},
        "dry_run": loads
        | {"embed"}
        | {name for name in VERBS if name.startswith("branch ") and name != "branch list"}
        | {"init", "mutate", "schema apply", "index", "optimize", "recover", "repair", "cleanup"}
        | {"tag create", "tag delete", "restore", "copy", "convert", "erase"},
        "branch": loads | reads | {"mutate", "embed", "index", "optimize", "repair", "tag create", "restore"},
    }


def test_options_are_not_abbreviated() -> None:
    given, mistakes = split("describe", "--gra", "g")
    assert given == {}
    assert mistakes[0].startswith("unknown option --gra; did you mean '--graph'?")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "a verb is missing: one of demo, init,"),
        (["explain", "--graph", "g"], "unknown verb 'explain': the plan of a query is shown by `query --explain`"),
        (["ingset"], "unknown verb 'ingset'; did you mean 'ingest'\\?"),
        (["branch"], "'branch' needs one of create, list"),
        (["branch", "rename", "x"], "'branch' needs one of create, list"),
        (["--graph", "g", "ingest"], "the verb comes first"),
    ],
)
def test_wrong_verbs(argv: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_verb(argv, VERBS)


def test_a_missing_value_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="expected one argument"):
        split("describe", "--graph")


@pytest.mark.parametrize("name", VERBS)
def test_help_lists_every_option_with_default_and_example(name: str) -> None:
    verb = VERBS[name]
    text = " ".join(build(verb).format_help().split())
    for option in verb.all_options:
        assert f" {option.shown_name}" in text
        if option.default is not None:
            assert f"default: {option.default}" in text
        if option.env:
            assert option.env_name in text
    assert verb.example in text
    assert verb.example.startswith(f"spark-omnigraph {name}")
    assert "exit codes: 0 done" in text


@pytest.mark.parametrize("name", VERBS)
def test_the_example_of_a_verb_is_understood(name: str) -> None:
    verb, rest = find_verb(shlex.split(VERBS[name].example)[1:], VERBS)
    given, mistakes = split_arguments(verb, rest)
    assert verb.name == name
    assert mistakes == []
    assert {option.key for option in verb.all_options if option.required} <= set(given)


def test_the_overview_names_every_verb() -> None:
    table = overview(VERBS).split("verbs:\n")[1].split("\n\n")[0]
    assert [line.strip().split("  ")[0] for line in table.splitlines()] == list(VERBS)

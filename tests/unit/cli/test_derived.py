"""What is made from the table of verbs: completion at a prompt, and a schema of configuration files."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from spark_omnigraph.cli.derived.completion import SHELLS, script
from spark_omnigraph.cli.derived.schema import configuration_schema, schema_text
from spark_omnigraph.cli.program import main
from spark_omnigraph.cli.registry import VERBS

CONF = Path(__file__).parents[3] / "conf"
SCHEMA = configuration_schema(VERBS)
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def completed(line: str) -> list[str]:
    """What bash offers for the last word of a line."""
    words = line.split(" ")
    given = " ".join(f"'{word}'" for word in words)
    asked = f"COMP_WORDS=({given}); COMP_CWORD={len(words) - 1}; _spark_omnigraph; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    ended = subprocess.run(
        ["bash", "-c", f"{script('bash', VERBS)}\n{asked}"], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stderr == ""
    return [word for word in ended.stdout.split("\n") if word]


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("spark-omnigraph in", ["init", "ingest", "index"]),
        ("spark-omnigraph branch ", ["create", "list", "merge", "delete"]),
        ("spark-omnigraph branch merge rev --on-", ["--on-conflict"]),
        ("spark-omnigraph branch merge --on-conflict s", ["source"]),
        ("spark-omnigraph merge --on-duplicate ", ["last", "error"]),
        ("spark-omnigraph query --format j", ["json", "jsonl"]),
        ("spark-omnigraph export --format ", ["jsonl", "delta", "parquet"]),
        ("spark-omnigraph ingest --no-i", ["--no-index"]),
        ("spark-omnigraph ingest --input fil", []),
        ("spark-omnigraph nothing --", []),
        ("spark-omnigraph completion ", ["bash", "zsh", "fish"]),
        ("spark-omnigraph help bra", ["branch"]),
    ],
)
def test_bash_offers_what_the_program_takes(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_bash_offers_every_option_of_every_verb() -> None:
    text = script("bash", VERBS)
    for name, verb in VERBS.items():
        (line,) = [line for line in text.splitlines() if line.strip().startswith((f"'{name}') opt", f"{name}) opt"))]
        offered = set(line.partition("options='")[2].partition("'")[0].split())
        assert {option.flag_name for option in verb.all_options if not option.positional} <= offered


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_takes_its_script(shell: str) -> None:
    text = script(shell, VERBS)
    assert "--on-conflict" in text or "-l on-conflict" in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed here; its script is made of the table that bash's is made of")
    ended = subprocess.run([program, "-n"], input=text, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_descriptions_for_fish_are_one_text_each() -> None:
    lines = [line for line in script("fish", VERBS).splitlines() if line.startswith("complete ")]
    assert len(lines) > 500
    for line in lines:
        said = line.partition(" -d '")[2]
        assert not said or said.replace("\\'", "").count("'") == 1, line


def test_the_program_prints_both(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        assert capsys.readouterr().out == script(shell, VERBS).rstrip("\n") + "\n"
    assert main(["config-schema"]) == 0
    assert json.loads(capsys.readouterr().out) == SCHEMA
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert "  completion SHELL  " in shown
    assert "  config-schema  " in shown


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["completion"], "'completion' needs one of bash, zsh, fish after it"),
        (["completion", "bsh"], "'completion' needs one of bash, zsh, fish after it; did you mean 'bash'?"),
        (["completion", "bash", "x"], "'completion' needs one of bash, zsh, fish after it"),
        (["config-schema", "x"], "'config-schema' takes no argument"),
    ],
)
def test_another_shell_is_a_mistake(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert says in capsys.readouterr().err


def refused(content: object) -> list[str]:
    return sorted("/".join(map(str, error.absolute_path)) for error in CHECK.iter_errors(content))


def uncommented(path: Path) -> Any:
    lines = path.read_text(encoding="utf-8").splitlines()
    shown = yaml.safe_load("\n".join(line.removeprefix("#") for line in lines if line[:2] != "# "))
    return json.loads(json.dumps(shown, default=str))  # times as the texts that they are to editors


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert len(schema_text(VERBS)) < 200_000
    known = set(SCHEMA["$defs"])  # type: ignore[call-overload]  # it is a mapping, as is all of a schema
    named = {part.partition('"')[0].replace("%20", " ") for part in schema_text(VERBS).split("#/$defs/")[1:]}
    assert named == known


@pytest.mark.parametrize("name", sorted(path.stem for path in CONF.glob("*.yaml")))
def test_configurations_fit_the_schema(name: str) -> None:
    path = CONF / f"{name}.yaml"
    assert refused(yaml.safe_load(path.read_text(encoding="utf-8"))) == []
    content = uncommented(path)
    assert refused(content) == []
    verb = name.replace("-", " ") if name.replace("-", " ") in VERBS else None
    if verb is not None:
        assert refused({verb: content}) == []


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ({"grph": "g"}, ""),
        ({"executor": "sparc"}, "executor"),
        ({"merge": {"mode": "append"}}, "merge"),
        ({"ingest": {"mode": "apend"}}, "ingest/mode"),
        ({"ingest": {"load_concurrency": 0}}, "ingest/load_concurrency"),
        ({"index": "perhaps"}, "index"),
        ({"storage_options": {"aws_region": ["a"]}}, "storage_options"),
        ({"input": {"a": 1}}, "input"),
        (["graph"], ""),
    ],
)
def test_what_the_program_refuses_is_refused(content: object, where: str) -> None:
    assert refused(content) == [where]


@pytest.mark.parametrize(
    "content",
    [
        None,
        {"index": {"graph": "g"}},
        {"index": False},
        {"input": "a.jsonl", "max_bad_rows": "0.5%", "as_of": None},
        {"ingest": {"load_concurrency": "4", "storage_options": ["aws_region=x"], "meta": {"ticket": 7}}},
    ],
)
def test_what_the_program_takes_is_taken(content: object) -> None:
    assert refused(content) == []

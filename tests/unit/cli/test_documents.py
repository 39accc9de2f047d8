"""What is written about options in conf/ and docs/ is what the program has."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from spark_omnigraph.cli.config import resolve
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.cli.request import Request

ROOT = Path(__file__).parents[3]
NOT_IN_A_FILE = {"config"}


def uncommented(verb: str) -> dict[str, object]:
    text = (ROOT / "conf" / f"{verb.replace(' ', '-')}.yaml").read_text(encoding="utf-8")
    lines = [line.removeprefix("#") for line in text.splitlines() if line.startswith("#") and not line.startswith("# ")]
    content = yaml.safe_load("\n".join(lines))
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize("name", VERBS)
def test_a_configuration_shows_every_key_with_its_default(name: str) -> None:
    content = uncommented(name)
    options = {option.key: option for option in VERBS[name].all_options if option.key not in NOT_IN_A_FILE}
    assert list(content) == list(options)
    for key, option in options.items():
        if option.default is not None:
            assert option.parse(str(content[key]).lower() if isinstance(content[key], bool) else str(content[key])) == (
                option.parse(option.default)
            )


@pytest.mark.parametrize("name", VERBS)
def test_a_configuration_as_shipped_says_nothing(name: str) -> None:
    assert yaml.safe_load((ROOT / "conf" / f"{name.replace(' ', '-')}.yaml").read_text(encoding="utf-8")) is None


@pytest.mark.parametrize("name", VERBS)
def test_a_configuration_with_all_keys_on_is_accepted(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films.pg").write_text("node A { name: String @key }")
    (tmp_path / "tables.yaml").write_text("node: Film")
    for file in ("films.jsonl", "spec.json", "seed.yaml"):
        (tmp_path / file).touch()
    (tmp_path / "changes.gq").write_text('query drop() { delete A where name = "a" }')
    (tmp_path / "films.gq").write_text("query q() { match { $a: A } return { $a } }")
    (tmp_path / "films.sql").write_text("SELECT 1")
    content = uncommented(name)
    for key in [key for key in ("snapshot", "as_of", "tag") if key in content]:
        del content[key]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(content))
    verb = VERBS[name]
    config = resolve(Request(name, verb.all_options, verb.fixed), {"config": ["job.yaml"]}, {})
    assert config.verb == name


@pytest.mark.parametrize("name", ["ingest", "merge", "branch create", "index", "cleanup", "describe", "export"])
def test_the_configuration_of_a_graph_serves_its_verbs(name: str) -> None:
    verb, of_all = VERBS[name], {each.name: each.all_options for each in VERBS.values()}
    arguments = {"config": [str(ROOT / "conf" / "graph.yaml")]}
    config = resolve(Request(name, verb.all_options, verb.fixed, of_all), arguments, {})
    assert (config.graph, config.log_format) == ("s3://bucket/graphs/films", "json")
    assert config.name == ("review" if name == "branch create" else "")
    assert config.confirm is (name == "cleanup")


def test_the_jobs_page_has_every_verb_and_option() -> None:
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    for name, verb in VERBS.items():
        assert f"`{name}" in page
        for option in verb.all_options:
            assert f"`{option.flag_name}" in page or option.positional, option.flag_name


def test_the_readme_has_every_verb() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in VERBS if f"`{name}" not in page] == []

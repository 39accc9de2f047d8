"""The bundle for Databricks: what it names is there, and what it says is understood. Its command needs a workspace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from _pytest.mark.structures import ParameterSet

import spark_omnigraph
from spark_omnigraph.cli.config import JobConfig, resolve
from spark_omnigraph.cli.parser import find_verb, split_arguments
from spark_omnigraph.cli.registry import VERBS
from spark_omnigraph.cli.request import Request
from tests.support.notebooks import Widgets, cells

ROOT = Path(__file__).parents[2]
Task = dict[str, Any]
CLUSTER = {"existing_cluster_id", "job_cluster_key", "new_cluster"}
BUNDLE = yaml.safe_load((ROOT / "databricks.yml").read_text(encoding="utf-8"))
VARIABLES = {name: each["default"] for name, each in BUNDLE["variables"].items()}
TASKS = {
    f"{name}.{task['task_key']}": (job, task)
    for name, job in BUNDLE["resources"]["jobs"].items()
    for task in job["tasks"]
}


def filled(text: str, target: str = "dev") -> str:
    """A text with its variables."""
    known = {**VARIABLES, **BUNDLE["targets"][target].get("variables", {})}
    return re.sub(r"\$\{var\.(\w+)\}", lambda found: str(known[found[1]]), text)


def of_kind(kind: str) -> list[ParameterSet]:
    return [pytest.param(job, task, id=name) for name, (job, task) in TASKS.items() if kind in task]


def widgets_of(path: Path) -> dict[str, str]:
    """The widgets that a notebook makes, with their defaults."""
    widgets = Widgets({})
    code = [cell.text for cell in cells(path.read_text(encoding="utf-8")) if "dbutils.widgets.text(" in cell.text]
    assert len(code) == 1

    class Known:
        pass

    known: Any = Known()
    known.widgets = widgets
    exec(code[0], {"dbutils": known})
    return widgets.known


def test_a_notebook_elsewhere_has_what_its_page_lets_stand_for_databricks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All that notebooks ask of `dbutils`, but for a secret."""
    monkeypatch.setattr(spark_omnigraph, "local_session", lambda *_, **__: None)
    page = (ROOT / "notebooks/README.md").read_text(encoding="utf-8")
    known: dict[str, Any] = {}
    exec(page.partition("```python\n")[2].partition("```")[0], known)
    notebooks = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "notebooks").glob("*.py"))]
    asked = {name for text in notebooks for name in re.findall(r"\bdbutils\.(\w+\.\w+)\(", text)}
    missing = {name for name in asked if not callable(member_of(known["dbutils"], name))}
    assert missing == {"secrets.get"}
    widgets = known["dbutils"].widgets
    widgets.text("graph", "s3://bucket/graphs/films")
    widgets.dropdown("executor", "auto", ["auto", "local", "spark"])
    assert (widgets.get("graph"), widgets.get("executor")) == ("graphs/films", "auto")


def member_of(found: object, path: str) -> object:
    """A member of a member; None where there is none."""
    for name in path.split("."):
        found = getattr(found, name, None)
    return found


@pytest.mark.parametrize("name", TASKS)
def test_a_task_has_one_kind_and_one_place_to_run(name: str) -> None:
    job, task = TASKS[name]
    assert len({key for key in task if key.endswith("_task")}) == 1
    place = {"job_cluster_key", "environment_key"} & task.keys()
    assert len(place) == 1
    key = "job_clusters" if place == {"job_cluster_key"} else "environments"
    (where,) = place
    assert [each[where] for each in job[key]] == [task[where]]
    before = [each["task_key"] for each in job["tasks"]]
    for needed in task.get("depends_on", []):
        assert before.index(needed["task_key"]) < before.index(task["task_key"])
    if "environment_key" not in task and "python_wheel_task" in task:
        assert [filled(each["whl"]).rpartition("/")[2] for each in task["libraries"]] == [wheel_name()]


def wheel_name() -> str:
    version = re.search(r'__version__ = "(.+)"', (ROOT / "spark_omnigraph" / "__init__.py").read_text(encoding="utf-8"))
    assert version is not None
    return f"spark_omnigraph-{version[1]}-py3-none-any.whl"


@pytest.mark.parametrize(("job", "task"), of_kind("notebook_task"))
def test_a_notebook_is_there_and_knows_its_parameters(job: Task, task: Task) -> None:
    path = ROOT / task["notebook_task"]["notebook_path"]
    assert path.is_file()
    widgets = widgets_of(path)
    assert set(task["notebook_task"].get("base_parameters", {})) <= set(widgets)
    assert all(isinstance(value, str) for value in task["notebook_task"].get("base_parameters", {}).values())
    for each in job.get("parameters", []):
        assert filled(each["default"]) == VARIABLES[each["name"]]
        assert widgets.get(each["name"], VARIABLES[each["name"]]) == VARIABLES[each["name"]]


@pytest.mark.parametrize("target", BUNDLE["targets"])
@pytest.mark.parametrize(("job", "task"), of_kind("python_wheel_task"))
def test_parameters_are_those_of_the_program(
    job: Task, task: Task, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = task["python_wheel_task"]
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'name = "{wheel["package_name"].replace("_", "-")}"' in project
    assert f"{wheel['entry_point']} = " in project.partition("[project.scripts]")[2].partition("[")[0]
    # The volume of the workspace is a folder here.
    words = [filled(word, target).replace(VARIABLES["folder"], str(tmp_path)) for word in wheel["parameters"]]
    verb, rest = find_verb(words, VERBS)
    given, mistakes = split_arguments(verb, rest, VERBS)
    assert mistakes == []
    config = resolve(Request(verb.name, verb.all_options, verb.fixed), given, {})
    assert isinstance(config, JobConfig)
    assert config.graph == filled("${var.graph}", target)
    assert config.branch == "main"
    for path in (config.summary, config.bad_rows):
        assert path is None or path.startswith(str(tmp_path)), "what is kept lies on a volume, not on the cluster"


def test_serverless_has_an_environment_with_spark_and_arrow_writers() -> None:
    found = [each["spec"] for job, _ in TASKS.values() for each in job.get("environments", [])]
    assert found
    for spec in found:
        assert int(spec["environment_version"]) >= 5
        assert [filled(each).rpartition("/")[2] for each in spec["dependencies"]] == [wheel_name()]


def test_secrets_are_named_and_not_told() -> None:
    for job, _ in TASKS.values():
        for cluster in job.get("job_clusters", []):
            for key, value in cluster["new_cluster"]["spark_conf"].items():
                assert re.fullmatch(r"\{\{secrets/\w+/\w+\}\}", value), key


def test_every_variable_is_used_and_known() -> None:
    text = (ROOT / "databricks.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{var\.(\w+)\}", text)) == set(VARIABLES)
    assert set(BUNDLE["targets"]) == {"dev", "prod"}


def test_notebooks_install_the_wheel_of_the_bundle() -> None:
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        (install,) = re.findall(r"^# MAGIC %pip install (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert install.strip('"').partition("[")[0] == VARIABLES["wheel"], path.name

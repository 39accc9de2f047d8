"""Rules that are read off the source: what import-linter, ruff and mypy cannot say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_omnigraph.cli.registry import VERBS

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "spark_omnigraph"
SOURCES = sorted([*PACKAGE.rglob("*.py"), *(ROOT / "pyspark_omnigraph").rglob("*.py"), *(ROOT / "jobs").glob("*.py")])
MODULE_LINES = 500
FUNCTION_LINES = 60
JOB_LINES = 20
FILES_A_FOLDER = 16
FLAT = {"spark_omnigraph/commit": 22, "spark_omnigraph/engine": 22, "jobs": 32}
"""Folders that are one subject, read from end to end, and jobs, which are one file a verb."""
VAGUE = {"utils", "util", "helpers", "helper", "common", "core", "manager", "misc", "base"}


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def source_files() -> list[Path]:
    """Files of the repository; in a copy without its history, all that stand in visible folders."""
    if not (ROOT / ".git").exists():
        visible = (path for path in ROOT.iterdir() if not path.name.startswith("."))
        return [f for path in visible for f in (path.rglob("*") if path.is_dir() else [path]) if f.is_file()]
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [path for name in listed.split(b"\0") if name and (path := ROOT / name.decode()).is_file()]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}


def test_the_rules_see_the_source() -> None:
    names = {shown(path) for path in SOURCES}
    assert names > {"spark_omnigraph/errors.py", "spark_omnigraph/commit/protocol.py", "jobs/ingest.py"}


def test_modules_are_short() -> None:
    long = {shown(p): n for p in SOURCES if (n := len(p.read_text(encoding="utf-8").splitlines())) > MODULE_LINES}
    assert long == {}


def test_folders_are_short() -> None:
    counts = Counter(shown(path.parent) for path in SOURCES)
    crowded = {folder: n for folder, n in counts.items() if n > FLAT.get(folder, FILES_A_FOLDER)}
    assert crowded == {}
    assert set(FLAT) <= set(counts)


def test_functions_are_short(trees: dict[Path, ast.Module]) -> None:
    long = {
        f"{shown(path)}:{node.name}": lines
        for path, tree in trees.items()
        for node in functions(tree)
        if (lines := (node.end_lineno or 0) - node.lineno + 1) > FUNCTION_LINES
    }
    assert long == {}


def test_names_say_something() -> None:
    assert [shown(p) for p in SOURCES if p.stem in VAGUE or p.parent.name in VAGUE] == []


def test_no_two_classes_have_one_name(trees: dict[Path, ast.Module]) -> None:
    names = Counter(node.name for tree in trees.values() for node in tree.body if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_texts_of_filters_are_quoted_in_one_place(trees: dict[Path, ast.Module]) -> None:
    """Everything else asks `predicates.sql` for names and literals."""
    doubling = ["'", "''"]
    quoting = {
        shown(path)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "replace"
        and [a.value for a in node.args if isinstance(a, ast.Constant)] == doubling
    }
    assert quoting == {"spark_omnigraph/predicates/sql.py"}


def test_no_dictionary_stands_at_the_doors(trees: dict[Path, ast.Module]) -> None:
    """What a caller is given has a type with fields, but for the plain form of such a value, for a row of a graph,
    whose members the schema names, and for parameters, whose members the query names.
    """
    plain = re.compile(r"\b(?:dict|Mapping)\[str, (?:object|Any)\]")
    found = {
        node.name
        for path, tree in trees.items()
        for node in functions(tree)
        if path.relative_to(ROOT).parts[1] in ("graph", "branch", "commit", "write")
        and not node.name.startswith("_")
        and node.returns is not None
        and plain.search(ast.unparse(node.returns))
    }
    assert found == {"to_dict", "to_json", "ingest_result", "stats", "entity", "json_object"}


def caught(handler: ast.ExceptHandler) -> set[str]:
    return {node.id for node in ast.walk(handler.type or ast.Constant(None)) if isinstance(node, ast.Name)}


def test_writes_are_tried_again_in_one_loop(trees: dict[Path, ast.Module]) -> None:
    """A new kind of writer gives `in_attempts` one attempt, and the rule by which there is another. What the protocol
    and recovery do about those that they meet is theirs.
    """
    races = {"ExpectedVersionMismatch", "ConflictError", "lost"}
    loops = {
        shown(path)
        for path, tree in trees.items()
        if path.parent.name != "commit"
        for loop in ast.walk(tree)
        if isinstance(loop, ast.While) or (isinstance(loop, ast.For) and ast.unparse(loop.iter).startswith("range("))
        for handler in ast.walk(loop)
        if isinstance(handler, ast.ExceptHandler) and caught(handler) & races
    }
    assert loops == {"spark_omnigraph/write/attempts.py"}


def test_staged_files_are_removed_by_their_owner_and_by_the_protocol(trees: dict[Path, ast.Module]) -> None:
    """By whoever knows that nothing can name them: before they are handed over the one, from then on the other."""
    removing = {
        shown(path)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "spark_omnigraph.storage.tables.staged"
        if any(name.name == "discard" for name in node.names)
    }
    assert removing == {"spark_omnigraph/commit/protocol.py", "spark_omnigraph/write/staged_files.py"}


def test_table_keys_are_taken_apart_in_one_place(trees: dict[Path, ast.Module]) -> None:
    """`TableKey` knows its kind and type; what else has colons are URIs."""
    parting = {
        shown(path)
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "partition"
        and [a.value for a in node.args if isinstance(a, ast.Constant)] == [":"]
    }
    uris = {
        "spark_omnigraph/storage/uri.py",
        "spark_omnigraph/storage/tables/scan.py",
        "spark_omnigraph/records/values.py",
    }
    assert parting - uris == {"spark_omnigraph/catalog/identity.py"}


def test_a_branch_is_no_text_inside(trees: dict[Path, ast.Module]) -> None:
    """Below the doors, where `parse_branch` and `stored_branch` look at names, a branch has its own type."""
    inside = {
        f"{shown(path)}:{node.name}"
        for path, tree in trees.items()
        for node in functions(tree)
        if path.relative_to(ROOT).parts[1] in ("manifest", "storage", "commit", "branch", "write")
        for argument in (*node.args.args, *node.args.kwonlyargs)
        if argument.arg == "branch" and argument.annotation is not None and "str" in ast.unparse(argument.annotation)
    }
    assert inside == set()


def test_every_module_defers_annotations(trees: dict[Path, ast.Module]) -> None:
    """Types written `X | None` must not be evaluated on the oldest Python we support where that would fail."""
    lacking = [
        shown(path)
        for path, tree in trees.items()
        if any(isinstance(node, ast.FunctionDef | ast.AnnAssign) for node in ast.walk(tree))
        and not any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    ]
    assert lacking == []


def test_waivers_give_a_reason() -> None:
    """`# noqa: X - why`, `# type: ignore[x]  # why`, `# why  # fmt: skip`: an exception without a reason cannot be
    judged later.
    """
    waiver = re.compile(
        r"(?:#\s*(.*\S)\s+)?# fmt: skip$|#\s*(?:noqa: [A-Z0-9, ]+?|type: ignore\[[^\]]+\])(?:\s+[-#]\s*(.*))?$"
    )
    bare = [
        f"{shown(path)}:{number}"
        for path in (*SOURCES, *(ROOT / "tests").rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := waiver.search(line)) and len(found.group(1) or found.group(2) or "") < 10
    ]
    assert bare == []


def test_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(?:TODO|FIXME|XXX|NotImplementedError)\b")
    assert [shown(p) for p in SOURCES if later.search(p.read_text(encoding="utf-8"))] == []


def test_the_spark_layer_is_thin() -> None:
    """Spark adapts; a rule about commits, checks or records there is in the wrong room."""
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    adapters = (PACKAGE / "spark", ROOT / "jobs", ROOT / "pyspark_omnigraph")
    thin = sum(count for path, count in lines.items() if any(a in path.parents for a in adapters))
    assert thin / sum(lines.values()) < 0.2


def test_every_verb_has_a_job_and_a_configuration() -> None:
    jobs = {path.stem for path in (ROOT / "jobs").glob("*.py")} - {"__init__"}
    assert not jobs & sys.stdlib_module_names, "it would hide Python's own"
    assert {name.removesuffix("_graph") for name in jobs} == {name.split(" ")[0] for name in VERBS}
    configurations = {path.stem for path in (ROOT / "conf").glob("*.yaml")}
    assert configurations == {name.replace(" ", "-") for name in VERBS} | {"graph"}


def test_jobs_only_call_their_verb() -> None:
    for path in (ROOT / "jobs").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= JOB_LINES
        assert path.stem == "__init__" or f'sys.exit(main(["{path.stem.removesuffix("_graph")}", *sys' in text


def test_unit_tests_have_a_folder_for_each_room() -> None:
    def folders(of: Path) -> set[str]:
        return {path.name for path in of.iterdir() if any(path.glob("**/*.py"))}

    assert folders(ROOT / "tests" / "unit") == folders(ROOT / "spark_omnigraph")


def test_ci_runs_the_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    [command] = [line for line in readme.splitlines() if line.endswith("-m pytest")]
    assert command in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()


def test_documents_link_to_files_that_exist() -> None:
    broken = []
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            if "://" not in target and not (path.parent / target).exists():
                broken.append(f"{shown(path)} -> {target}")
    assert broken == []


def test_documents_name_modules_that_exist() -> None:
    """A path in backticks is one of the repository, of the package or of the tests."""
    roots = (ROOT, PACKAGE, ROOT / "tests")
    gone = [
        f"{shown(page)}: {path}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"]
        for path in re.findall(r"`(\w[\w/]*/\w+\.py)`", page.read_text(encoding="utf-8"))
        if not any((root / path).exists() for root in roots)
    ]
    assert gone == []


def test_the_pictures_name_what_the_source_has(trees: dict[Path, ast.Module]) -> None:
    """In pictures of ARCHITECTURE.md a step is a function or a class, and what it makes is a class."""
    pictures = re.findall(r"^```\n(.*?)^```$", (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"), re.M | re.S)
    made = {name for picture in pictures for name in re.findall(r"\b[A-Z][a-z]+[A-Z]\w+", picture)}
    steps = {name for picture in pictures for name in re.findall(r"\b[a-z]+_[a-z_]+\b(?!/)", picture)}
    nodes = [node for tree in trees.values() for node in ast.walk(tree)]
    defined = {n.name for n in nodes if isinstance(n, ast.ClassDef | ast.FunctionDef)}
    modules = {path.stem for path in SOURCES} | {path.name for path in PACKAGE.iterdir()}
    assert len(made) > 10
    assert made | steps <= defined | modules | {"__recovery", "x_stage"}


def test_no_file_has_marks_of_an_unfinished_merge() -> None:
    """Also where no program reads it: documents, configuration, data of tests."""
    mark = re.compile(rb"^(?:<{7}|={7}$|>{7})", re.MULTILINE)
    files = source_files()
    assert {ROOT / "README.md", ROOT / "conf" / "ingest.yaml", Path(__file__)} <= set(files)
    contents = ((path, path.read_bytes()) for path in files)
    assert [shown(path) for path, data in contents if b"\0" not in data and mark.search(data)] == []

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import spark_omnigraph
from spark_omnigraph.bad_rows import BadRow, BadRowSummary, Rule
from spark_omnigraph.cli import options as o
from spark_omnigraph.cli.program import main, run, script
from spark_omnigraph.cli.verb import Job, Verb, VerbOutcome
from spark_omnigraph.errors import (
    BadRowsError,
    ExpectedVersionMismatch,
    InternalError,
    NotFoundError,
    RecoveryRequiredError,
    StorageError,
    UsageError,
)

KEYS = [
    "job", "version", "run_id", "graph", "branch", "status", "exit_code", "dry_run", "base_commit", "commit",
    "manifest_version", "tables", "bad_rows", "phases", "seconds", "warnings", "error",
]  # laid out as a table  # fmt: skip
BAD_ROWS = BadRowsError(
    "3 bad rows, 0 allowed: nothing was loaded",
    BadRowSummary(3, {"range": 2, "unique": 1}, (BadRow("a", 1, 0, "T", "p", Rule.RANGE, "m", "{}"),), "bad.jsonl"),
)


def verbs(work: Callable[[Job], VerbOutcome]) -> dict[str, Verb]:
    return {"load": Verb("load", "Loads.", "load", work, (), o.COMMON)}


def failing(error: BaseException) -> dict[str, Verb]:
    def work(_job: Job) -> VerbOutcome:
        raise error

    return verbs(work)


def summary(text: str) -> dict[str, object]:
    """The last line of standard output."""
    body = json.loads(text.splitlines()[-1])
    assert isinstance(body, dict)
    return body


def test_a_finished_job(capsys: pytest.CaptureFixture[str]) -> None:
    counts = {"read": 3, "valid": 3, "bad": 0, "inserted": 3, "updated": 0, "deleted": 0, "superseded": None}
    outcome = VerbOutcome(
        "dev", "c0", "c1", 7, {"node:T": counts}, {"total": 0, "per_rule": {}}, {"stage": 0.5}, ("slow",)
    )
    code = run(["load", "--graph", "g", "--branch", "dev"], {}, verbs(lambda _: outcome))
    out, err = capsys.readouterr()
    body = summary(out)
    assert code == 0
    assert list(body) == KEYS
    assert out.count("\n") == 1
    assert body.pop("version") == spark_omnigraph.__version__
    del body["run_id"], body["seconds"]
    assert body == {
        "job": "load",
        "graph": "g",
        "branch": "dev",
        "status": "done",
        "exit_code": 0,
        "dry_run": False,
        "base_commit": "c0",
        "commit": "c1",
        "manifest_version": 7,
        "tables": {"node:T": counts},
        "bad_rows": {"total": 0, "per_rule": {}},
        "phases": {"stage": 0.5},
        "warnings": ["slow"],
        "error": None,
    }
    assert "warning: slow" in err


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (StorageError("disk full"), 1, "failed"),
        (InternalError("bug"), 1, "failed"),
        (UsageError("no Java"), 2, "usage"),
        (BAD_ROWS, 3, "refused"),
        (ExpectedVersionMismatch("node:T", 3, 4), 4, "conflict"),
        (RecoveryRequiredError("interrupted"), 5, "recovery_required"),
        (NotFoundError("no graph"), 6, "not_found"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_exit_codes(error: BaseException, code: int, status: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", "--graph", "g"], {}, failing(error)) == code
    body = summary(capsys.readouterr().out)
    assert (body["exit_code"], body["status"]) == (code, status)
    assert body["error"] is not None
    for unknown in ("base_commit", "commit", "manifest_version", "tables", "phases"):
        assert body[unknown] is None


def test_what_fails_while_an_interrupt_ends_the_job_does_not_hide_it(capsys: pytest.CaptureFixture[str]) -> None:
    def work(error: Exception, _job: Job) -> VerbOutcome:
        try:
            raise KeyboardInterrupt
        finally:
            try:
                raise OSError("a broken pipe")
            except OSError as cause:
                raise error from cause

    for error, code in ((RuntimeError("no answer"), 130), (StorageError("lost"), 130), (RecoveryRequiredError("x"), 5)):
        assert run(["load", "--graph", "g"], {}, verbs(partial(work, error))) == code
        said = capsys.readouterr()
        body = summary(said.out)
        assert (body["status"], body["exit_code"]) == ("interrupted" if code == 130 else "recovery_required", code)
        assert "Traceback" not in said.err


def test_bad_rows_are_counted_in_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    run(["load", "--graph", "g"], {}, failing(BAD_ROWS))
    out, err = capsys.readouterr()
    assert summary(out)["bad_rows"] == {"total": 3, "per_rule": {"range": 2, "unique": 1}, "report": "bad.jsonl"}
    assert "3 bad rows: range 2, unique 1" in err
    assert "a:1: T.p: range: m" in err
    assert "error: 3 bad rows, 0 allowed: nothing was loaded" in err


def test_a_lost_race_says_what_was_expected(capsys: pytest.CaptureFixture[str]) -> None:
    run(["load", "--graph", "g"], {}, failing(ExpectedVersionMismatch("node:T", 3, 4)))
    error = summary(capsys.readouterr().out)["error"]
    assert isinstance(error, dict)
    assert (error["code"], error["kind"]) == ("conflict", "expected_version_mismatch")
    assert error["manifest_conflict"] == {"table_key": "node:T", "expected": 3, "actual": 4}


def test_an_unexpected_error_has_a_summary_and_a_stack(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["load", "--graph", "g"], {}, failing(KeyError("x\nwall of Java"))) == 1
    out, err = capsys.readouterr()
    assert summary(out)["error"] == {"error": "KeyError: 'x\\nwall of Java'", "code": "internal", "kind": "unexpected"}
    assert "Traceback" in err


def test_expected_errors_have_a_stack_only_on_demand(capsys: pytest.CaptureFixture[str]) -> None:
    run(["load", "--graph", "g"], {}, failing(NotFoundError("no graph")))
    assert "Traceback" not in capsys.readouterr().err
    run(["load", "--graph", "g", "--log-level", "debug"], {}, failing(NotFoundError("no graph")))
    assert "Traceback" in capsys.readouterr().err


def test_usage_errors_never_reach_the_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "deep" / "summary.json"
    code = run(
        ["load", "--grph", "g", "--summary", str(path), "--log-format", "json"], {}, failing(AssertionError("reached"))
    )
    out, err = capsys.readouterr()
    assert code == 2
    assert json.loads(path.read_text()) == summary(out)
    assert "unknown option --grph" in str(summary(out)["error"])
    assert json.loads(err)["level"] == "error"


def test_the_summary_file_equals_the_last_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "summary.json"

    def emitting(job: Job) -> VerbOutcome:
        job.emit("data")
        return VerbOutcome()

    run(["load", "--graph", "g", "--summary", str(path)], {}, verbs(emitting))
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "data"
    assert path.read_text() == out.splitlines()[1] + "\n"
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]


def test_a_summary_that_cannot_be_written_fails_the_job(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def work(_: Job) -> VerbOutcome:
        (tmp_path / "file").write_text("")
        return VerbOutcome(commit="c1")

    code = run(["load", "--graph", "g", "--summary", str(tmp_path / "file" / "s.json")], {}, verbs(work))
    out, err = capsys.readouterr()
    assert code == 1
    assert (summary(out)["exit_code"], summary(out)["commit"]) == (1, "c1")
    assert "--summary: io: cannot write" in err


def test_two_runs_have_two_ids(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        run(["load", "--graph", "g"], {}, verbs(lambda _: VerbOutcome()))
    first, second = (json.loads(line)["run_id"] for line in capsys.readouterr().out.splitlines())
    assert first != second


def test_storage_options_are_never_shown(capsys: pytest.CaptureFixture[str]) -> None:
    run(["load", "--graph", "g", "--storage-option", "aws_access_key_id=AKIA"], {}, verbs(lambda _: VerbOutcome()))
    assert "AKIA" not in "".join(capsys.readouterr())


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["--version"], ["ingest", "--help"], ["branch", "list", "-h"]])
def test_help_is_no_job(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "run_id" not in out
    assert err == ""


CHILD = """
import sys, time
from spark_omnigraph.cli import options as o
from spark_omnigraph.cli.program import run
from spark_omnigraph.cli.verb import VerbOutcome, Verb

def work(job):
    try:
        job.log.info("ready")
        time.sleep(60)
    finally:
        job.log.info("tidied")
    return VerbOutcome()

sys.exit(run(["load", "--graph", "g"], {}, {"load": Verb("load", "Loads.", "load", work, (), o.COMMON)}))
"""


@pytest.mark.parametrize(
    ("number", "code", "status"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_a_signal_ends_the_job_tidily(number: signal.Signals, code: int, status: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # laid out as a table  # fmt: skip
    assert child.stderr is not None
    assert "ready" in child.stderr.readline()
    child.send_signal(number)
    out, err = child.communicate(timeout=60)
    assert child.returncode == code
    assert "tidied" in err
    assert summary(out)["status"] == status


def test_a_reader_that_leaves_is_no_disaster() -> None:
    program = CHILD.replace("time.sleep(60)", '[job.emit("x" * 1000) for _ in range(10000)]')
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )  # laid out as a table  # fmt: skip
    assert child.stdout is not None
    child.stdout.close()
    assert child.stderr is not None
    err = child.stderr.read()
    child.stderr.close()
    assert child.wait(60) == 1
    assert "cannot write to standard output: Broken pipe" in err
    assert "Traceback" not in err
    assert "Exception ignored" not in err


def test_the_script_ends_the_process_only_when_it_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["spark-omnigraph", "--version"])
    script()
    monkeypatch.setattr("sys.argv", ["spark-omnigraph", "describe"])
    with pytest.raises(SystemExit) as ended:
        script()
    assert ended.value.code == 2
    capsys.readouterr()


def test_help_is_a_verb_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["help"]) == 0
    assert capsys.readouterr().out.startswith("usage: spark-omnigraph VERB")
    assert main(["help", "branch", "create"]) == 0
    assert capsys.readouterr().out.startswith("usage: spark-omnigraph branch create")
    assert main(["help", "ingset"]) == 2
    assert "did you mean 'ingest'?" in capsys.readouterr().err


def test_the_package_runs_as_a_module() -> None:
    words = [sys.executable, "-m", "spark_omnigraph", "--version"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"spark-omnigraph {spark_omnigraph.__version__}\n")

"""The verb `embed` for a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from spark_omnigraph.cli.program import main
from tests.support.embedding_server import EmbeddingServer, refusal

LINES = ['{"type":"Memo","data":{"a":"x"}}', "", '{"type":"Memo","data":{"a":"y","vec":[1,0]}}', '{"edge":"E"}']
SPEC = {"dimension": 2, "types": {"Memo": {"target": "vec", "fields": ["a"]}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text("\n".join(LINES))
    (tmp_path / "spec.json").write_text(json.dumps(SPEC))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["embed", *words])
    out, err = capsys.readouterr()
    assert "sk-test" not in out + err
    return code, json.loads(out)


FILES = ("--input", "in.jsonl", "--output", "out.jsonl", "--spec", "spec.json")


def test_a_file_gets_its_vectors(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddingServer() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        code, body = run(capsys, *FILES, "--price-per-million", "2")
        assert code == 0
        assert body["result"] == {
            "input": "in.jsonl",
            "output": "out.jsonl",
            "rows": 3,
            "selected_rows": 2,
            "wanted_rows": 1,
            "embedded_rows": 1,
            "cleaned_rows": 0,
            "failed_rows": 0,
            "distinct": 1,
            "requests": 1,
            "retries": 0,
            "tokens": 4,
            "bytes": 15,
            "mode": "fill_missing",
            "dimension": 2,
            "model": "maker/m1",
            "minutes": None,
            "cost": 0.000008,
        }
        assert server.asked == ["type: Memo\na: x"]
    first, second, third = (folder / "out.jsonl").read_text().splitlines()
    assert len(json.loads(first)["data"]["vec"]) == 2
    assert [second, third] == [LINES[2], LINES[3]]


def test_nothing_is_written_when_a_text_fails(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "out.jsonl").write_text("as it was")
    with EmbeddingServer([refusal(400, "no")], repeat_last=True) as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        code, body = run(capsys, *FILES)
        assert (code, body["error"]["kind"]) == (1, "embedding")
        assert (folder / "out.jsonl").read_text() == "as it was"
        assert sorted(path.name for path in folder.iterdir()) == ["in.jsonl", "out.jsonl", "spec.json"]
        code, body = run(capsys, *FILES, "--max-bad-rows", "1")
    assert (code, body["result"]["failed_rows"]) == (0, 1)
    assert body["warnings"] == ["line 1: embedding request failed with status 400 Bad Request: no"]
    assert (folder / "out.jsonl").read_text().splitlines() == [line for line in LINES if line]


def test_cleaning_and_looking_need_no_provider(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, body = run(capsys, *FILES, "--dry-run", "--all")
    assert (code, body["result"]["wanted_rows"], body["result"]["mode"]) == (0, 2, "reembed_all")
    assert not (folder / "out.jsonl").exists()
    code, body = run(capsys, *FILES, "--clean")
    assert (code, body["result"]["cleaned_rows"], body["result"]["model"]) == (0, 1, "")
    assert "vec" not in (folder / "out.jsonl").read_text()


def test_a_dry_run_says_what_a_file_would_take(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"type": "Memo", "data": {"a": f"{number % 20:02}"}}) for number in range(30)]
    (folder / "in.jsonl").write_text("\n".join(lines))  # 20 texts of 16 bytes: 80 tokens
    names = ("distinct", "requests", "tokens", "minutes", "cost", "embedded_rows")
    words = ("--dry-run", "--price-per-million", "2", "--batch", "8", "--tokens-per-minute", "20")
    code = main(["embed", *FILES, *words])
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert (code, [found["result"][name] for name in names]) == (0, [20, 0, 80, None, 0.00016, 0])
    assert "or how many requests it takes: OPENROUTER_API_KEY or OPENAI_API_KEY is required" in err
    with EmbeddingServer() as server:
        for name, value in server.environ().items():
            monkeypatch.setenv(name, value)
        code = main(["embed", *FILES, *words])
        out, err = capsys.readouterr()
        found = json.loads(out)
        assert (code, [found["result"][name] for name in names]) == (0, [20, 3, 80, 4.0, 0.00016, 0])
        assert "nobody was asked, nothing was written; tokens: about 80; minutes: 4.0; cost: 0.000160" in err
        for bound in (("--max-tokens", "79"), ("--max-cost", "0.0001", "--price-per-million", "2")):
            code, body = run(capsys, *FILES, *bound)
            assert code == 3
            most = "and at most 79 may be" if len(bound) == 2 else "which cost about 0.00016, and at most 0.0001 may be"
            assert body["error"]["error"].startswith(f"about 80 tokens would be asked for, {most}")
        assert (server.asked, (folder / "out.jsonl").exists()) == ([], False)
        code, body = run(capsys, *FILES, "--max-tokens", "80")
        assert (code, body["result"]["embedded_rows"], len(server.asked)) == (0, 30, 20)


def test_a_manifest_names_packed_files(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    (folder / "seeds").mkdir()
    (folder / "seeds/raw.jsonl.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
    manifest = f"sources: {{raw_seed: raw.jsonl.gz}}\nembeddings: {json.dumps(SPEC)}\n"
    (folder / "seeds/seed.yaml").write_text(manifest)
    code, body = run(capsys, "--seed", "seeds/seed.yaml", "--select", "Memo:a=y")
    assert (code, body["result"]["mode"], body["result"]["embedded_rows"]) == (0, "reembed_selected", 1)
    assert len((folder / "seeds/build/seed.embedded.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("", 2, "embed needs --graph URI, or a file"),
        ("--input in.jsonl", 2, "a file needs --input FILE, --output FILE and --spec FILE"),
        ("--input in.jsonl --output out --spec spec.json --stale", 2, "--stale: only for the rows of a graph"),
        ("--input in.jsonl --output out --spec spec.json --cache c", 2, "--cache: only for the rows of a graph"),
        ("--input in.jsonl --output in.jsonl --spec spec.json", 2, "is read"),
        ("--input in.jsonl --output out --spec in.jsonl", 3, "the specification is not"),
        ("--input in.jsonl --output out --spec spec.json --select a", 3, "selector must be field=value"),
        ("--input in.jsonl --output out --spec spec.json", 2, "OPENROUTER_API_KEY or OPENAI_API_KEY is required"),
        ("--input in.jsonl --output out --spec spec.json --max-bad-rows 5%", 2, "a number of rows"),
        ("--seed spec.json", 2, "names no input: sources.raw_seed"),
        ("--seed bad.yaml", 2, "is no specification"),
        ("--seed same.yaml --provider mock", 2, "is read"),
        ("--seed gone.yaml --provider mock", 6, "there is no file 'gone.jsonl'; did you mean"),
    ],
)
def test_mistakes(folder: Path, capsys: pytest.CaptureFixture[str], words: str, code: int, message: str) -> None:
    spec = json.dumps(SPEC)
    (folder / "bad.yaml").write_text("seed: {data: in.jsonl}\nembeddings: 3")
    (folder / "same.yaml").write_text(
        f"seed: {{data: in.jsonl}}\nartifacts: {{embedded_seed: ./in.jsonl}}\nembeddings: {spec}"
    )
    (folder / "gone.yaml").write_text(f"seed: {{data: gone.jsonl}}\nembeddings: {spec}")
    found, body = run(capsys, *words.split())
    assert (found, message in body["error"]["error"]) == (code, True), body["error"]
    assert not (folder / "out").exists()


def test_a_mock_that_hides_a_provider_is_warned_of(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "gemini")
    assert main(["embed", *FILES]) == 0
    assert "vectors are made up, and the provider of OMNIGRAPH_EMBED_PROVIDER ('gemini') is not asked" in (
        capsys.readouterr().err
    )

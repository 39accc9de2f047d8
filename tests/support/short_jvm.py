"""Options of a JVM that ends before a better compiler or garbage collector would have paid."""

from __future__ import annotations

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WARM = {"spark.python.daemon.module": "tests.support.warm_daemon"}
"""Python workers that need not import the library each."""

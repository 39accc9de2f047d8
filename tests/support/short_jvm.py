"""Options of a JVM that ends before a better compiler or garbage collector would have paid."""

from __future__ import annotations

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
WARM = {
    "spark.python.daemon.module": "tests.support.warm_daemon",
    "spark.python.authenticate.socketTimeout": "120s",
}
"""Python workers that need not import the library each; and a busy machine has time to fetch what Spark offers it, of
which Spark takes the socket away after 15 seconds.
"""

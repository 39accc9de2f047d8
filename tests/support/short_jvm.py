"""Options of a JVM that ends before a better compiler or garbage collector would have paid."""

from __future__ import annotations

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

"""Spark on one side, a verb of `graph` on the other."""

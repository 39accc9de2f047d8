"""Branches of a graph: create, list, and the lazy fork of a table on its first write."""

"""Merging branches: three-way, by row, checked against the merged graph, in one commit."""

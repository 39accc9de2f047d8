"""Copies of a graph elsewhere."""

"""Constraints: checks inside one batch, and probes of the whole graph."""

"""Vectors of stored rows: found missing or out of date, asked for once, and published in one commit."""

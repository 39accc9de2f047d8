"""Manifest rows and snapshots as values; everything here is pure."""

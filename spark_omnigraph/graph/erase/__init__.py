"""Erasing one row for good."""

"""The query language once more, in plain Python from its rules: slow, and meant to be read."""

"""The accepted schema as values."""

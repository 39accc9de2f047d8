"""An old state as a new commit."""

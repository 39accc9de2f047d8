"""The `__manifest` dataset and the commit log."""

"""Schema changes of a stored graph: planned, counted, applied."""

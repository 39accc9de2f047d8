"""JSON lines to Arrow batches."""

"""The data source as a reader, of batches and of streams."""

"""The data source as a writer, of batches and of streams."""

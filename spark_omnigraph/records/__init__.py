"""Input records to typed Arrow batches: what a line means, and how many of them are read at once."""

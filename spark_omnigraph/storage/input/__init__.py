"""What a load reads: files, and ranges of them."""

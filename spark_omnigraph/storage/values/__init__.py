"""Values of columns apart from the rows that they belong to."""

"""Small objects and whole files."""

"""What keeps a graph whole and fast, and changes no row."""

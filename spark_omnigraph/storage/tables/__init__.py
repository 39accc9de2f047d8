"""Lance datasets of nodes and edges."""

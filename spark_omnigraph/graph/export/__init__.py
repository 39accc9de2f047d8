"""Types of a graph as tables for other programs."""

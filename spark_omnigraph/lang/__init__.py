"""The languages of the graph: text → checked values."""

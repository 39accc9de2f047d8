"""Texts → vectors: configuration, providers, and what their answers must be. Knows no graph, no Spark and no Lance."""

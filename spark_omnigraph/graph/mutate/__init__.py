"""Mutations: the statements of one query as one commit."""

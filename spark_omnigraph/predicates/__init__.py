"""Predicates of stored tables as texts of Lance's filter language: exact, and written in this room alone."""

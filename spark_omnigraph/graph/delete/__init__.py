"""Deletes by id, and what follows from a delete."""

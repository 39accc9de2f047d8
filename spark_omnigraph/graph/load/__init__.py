"""Loads of files and of frames."""

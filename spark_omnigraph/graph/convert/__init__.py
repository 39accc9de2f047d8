"""Graphs of any readable format as new graphs of the one that is written."""

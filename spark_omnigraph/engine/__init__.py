"""Queries on one machine: a plan of `lang.gq`, bound to one snapshot, run by Lance scans, numpy and Arrow."""

"""Everything that differs between stored formats: which stamps there are, and how the rows and documents of each read.

What is above sees snapshots, commits and catalogs, whichever format they came from.
"""

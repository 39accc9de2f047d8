"""The rules of the query language: syntax tree to typed query."""

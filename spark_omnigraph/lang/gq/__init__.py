"""The query language: text → syntax tree → typed query → plan."""

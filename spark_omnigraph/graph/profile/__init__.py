"""A schema proposed from data: what the rows of files show, and the text of a schema that they fit."""

"""What is made from the table of verbs: completion for shells, and a schema of configuration files."""

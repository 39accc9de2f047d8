"""What recovery, writers and whoever changes the schema know of a schema change."""

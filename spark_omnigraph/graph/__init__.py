"""The verbs a caller knows, one file each."""

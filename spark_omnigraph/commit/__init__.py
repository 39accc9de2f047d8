"""Everything that makes a write visible. Start with `protocol.py`."""

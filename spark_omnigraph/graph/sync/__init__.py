"""Types that follow a Delta table: its snapshot first, then its changes."""

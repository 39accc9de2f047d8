"""What reads a graph: queries, scans, exports, history."""

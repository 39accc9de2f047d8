"""What the program writes: rows, log lines, the summary, the exit code."""

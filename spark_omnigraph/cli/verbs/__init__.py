"""The verbs, each a function from a job to its outcome."""

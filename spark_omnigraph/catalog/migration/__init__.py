"""The difference of two schemas: steps, and what each of them does to stored rows."""

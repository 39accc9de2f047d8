"""How far long work is: what it tells, and a bar for whoever looks at a terminal or a notebook."""

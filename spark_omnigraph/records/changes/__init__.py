"""Mode `changes`: what records say of the rows that they change, and which of several changes counts."""

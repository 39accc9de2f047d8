"""Messages of Lance that are read or made here, below its Python interface."""

"""Random graphs and random queries: the engine, in every form it has, against `tests.oracle`."""

"""What every writer does, whatever it writes: checks over the whole graph, executors, clocks."""

"""Read queries as DataFrames of Spark: the second engine, and the tasks in which the embedded one runs."""

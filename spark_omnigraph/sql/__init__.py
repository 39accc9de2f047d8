"""SQL over a graph, by DataFusion: reads alone, in bounded memory."""

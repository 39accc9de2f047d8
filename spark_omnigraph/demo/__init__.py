"""The demo: a graph of films, made, loaded and asked."""

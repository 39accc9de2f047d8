"""Files for spark-submit; each calls one verb."""

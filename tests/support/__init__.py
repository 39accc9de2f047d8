"""What the tests above units share: case files, a tiny reader, processes, an S3 server, executors that misbehave."""

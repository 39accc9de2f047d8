"""Frames to Arrow batches."""

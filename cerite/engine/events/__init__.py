"""What the engine knows about events: which columns hold what, window keys, partitions as numbers."""

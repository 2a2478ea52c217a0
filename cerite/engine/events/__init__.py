"""What the engine knows of events: which columns hold what, window keys, partitions as numbers."""

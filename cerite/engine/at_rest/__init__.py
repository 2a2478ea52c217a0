"""Data at rest, on all cores: a stream cut by time, or its partitions divided among threads."""

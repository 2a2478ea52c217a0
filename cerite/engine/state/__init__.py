"""What kernels and engines keep: where a kernel stopped, slots of partitions, arenas that are packed, snapshots."""

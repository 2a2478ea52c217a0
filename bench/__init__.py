"""The benchmark suite: `python -m bench` measures Cerite on the workloads of the CORE paper (docs/benchmarks.md)."""

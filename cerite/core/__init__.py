"""What every room may use: errors, names, schemas, matches, compiled kernels and their cache. Imports nothing above."""

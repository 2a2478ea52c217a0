"""A live stream under faults: is any match lost, or told twice? `python -m tests.chaos` runs it and prints a table."""

"""A live stream under faults: is any match lost, or reported twice? `python -m tests.chaos` prints a table."""

"""The engine: a query becomes a plan, a plan and columns a program, and runs of programs find and count matches."""

"""Registers moved in groups: all starts of a window in one tree, ordered by the value they store, moved lazily."""

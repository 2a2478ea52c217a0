"""Registers moved in groups: all starts of a window in one tree by the value they store, moved lazily."""

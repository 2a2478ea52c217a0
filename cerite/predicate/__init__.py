"""Conditions: expression trees, their text, their kinds, and what they mean on an event."""

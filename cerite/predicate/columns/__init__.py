"""Conditions over Arrow columns: one bit per condition and event, without Python per event."""

"""Matches in flat arrays: as Arrow, merged, with their ids, events and measures, in the shape that all routes share."""

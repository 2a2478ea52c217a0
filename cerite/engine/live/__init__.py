"""Streams that do not end: events in any order within a watermark, snapshots, and what a snapshot belongs to."""

"""Rewrites that keep a pattern's meaning, one per file: pattern in, pattern out."""

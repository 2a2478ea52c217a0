"""What users hold: queries, their matches, streams that keep coming, explanations."""

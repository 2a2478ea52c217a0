"""Recognition and counting with registers: conditions across events on the tECS (DESIGN 5.2-5.4)."""

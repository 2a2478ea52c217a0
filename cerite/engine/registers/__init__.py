"""Recognition and counting with registers: conditions across events on the tECS (docs/registers.md)."""

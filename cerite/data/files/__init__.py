"""Events in files: Parquet, Arrow IPC, CSV and TSV, JSON lines, CORE's text form, as one source."""

"""The command line: `cerite check`, `cerite explain`."""

"""Tests, without the note on stderr that kernels are being compiled, which would be read as a command's output."""

import os

os.environ.setdefault("CERITE_QUIET", "1")

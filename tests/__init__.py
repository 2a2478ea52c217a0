"""Tests. What is compiled for the first time says so on stderr; here that would be read as output."""

import os

os.environ.setdefault("CERITE_QUIET", "1")

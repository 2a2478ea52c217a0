"""The command line: `cerite demo`, `check`, `explain`, `run`, `why`, `stream`, `warm-up`; it needs the extra `cli`."""

import sys

from cerite.core.errors import MissingExtraError
from cerite.core.extras import load


def main() -> None:
    """The command `cerite`."""
    try:
        command = load("cerite.cli.main").main
    except MissingExtraError as error:
        sys.exit(f"error: {error}")
    command()

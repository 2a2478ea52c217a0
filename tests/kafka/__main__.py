"""`python -m tests.kafka`: a broker to try things with, until Ctrl-C."""

from __future__ import annotations

import signal
import sys

from tests.kafka.artifacts import UnavailableError, connector
from tests.kafka.broker import Broker


def main() -> None:
    """Start a broker and say how to reach it."""
    try:
        with Broker() as broker:
            print(f"Kafka listens on {broker.address}; Ctrl-C stops it. A Spark session reaches it with", flush=True)
            print(*(f"  --conf {name}={value}" for name, value in connector().items()), sep="\n", flush=True)
            signal.pause()
    except UnavailableError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        print("stopped")


if __name__ == "__main__":
    main()

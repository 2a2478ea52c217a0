"""A real Kafka broker for tests and for trying things: `python -m tests.kafka` starts one until Ctrl-C."""

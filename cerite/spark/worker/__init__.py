"""What runs in Spark's tasks, and what travels there; it depends neither on the driver nor on `cerite.api`."""

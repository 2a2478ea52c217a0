"""What runs in Spark's tasks, and what travels there; it knows neither the driver nor what users hold."""

"""Recognition where every condition looks at one event: classes of events, determinisation on the fly, Algorithm 1."""

"""What people write: CEQL, SREMO and the Python builder, all becoming `cerite.pattern`."""

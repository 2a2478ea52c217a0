"""Exact counts without enumeration: two stacks of matrix products, in 62 bits or in as many limbs as needed."""

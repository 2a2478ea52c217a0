"""`query.explain()`: what a query means and how it will run."""

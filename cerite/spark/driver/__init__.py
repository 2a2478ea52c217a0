"""What plans a query on Spark: the request, conditions as Spark Columns, cuts, shuffles."""

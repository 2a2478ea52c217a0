"""Whether a DataFrame is nothing but a scan of Parquet files, and whether Spark reads a column as the file has it."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as ty


def not_a_scan(df: DataFrame) -> str:
    """Why the DataFrame is more than a scan of Parquet files; empty if it is not."""
    plan = getattr(df, "_plan", None)
    if plan is not None:  # Spark Connect
        plain = type(plan).__name__ == "DataSource" and getattr(plan, "_format", None) == "parquet"
        return "" if plain and not getattr(plan, "_schema", None) else "the DataFrame is not a plain scan of Parquet"
    analyzed = df._jdf.queryExecution().analyzed()
    if analyzed.getClass().getSimpleName() != "LogicalRelation":
        return "the DataFrame is not a plain scan of files"
    relation = analyzed.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return "the DataFrame is not a plain scan of files"
    if relation.fileFormat().getClass().getSimpleName() != "ParquetFileFormat":
        return "the files are not Parquet"
    return "the files lie in partition folders" if relation.partitionSchema().size() else ""


_ARROW: dict[type[ty.DataType], pa.DataType] = {
    ty.LongType: pa.int64(), ty.IntegerType: pa.int32(), ty.ShortType: pa.int16(), ty.ByteType: pa.int8(),
    ty.DoubleType: pa.float64(), ty.FloatType: pa.float32(), ty.BooleanType: pa.bool_(), ty.BinaryType: pa.binary(),
    ty.DateType: pa.date32(),
}  # fmt: skip


def same_type(arrow: pa.DataType, spark: ty.DataType) -> bool:
    """Whether a column of the file is what Spark makes of it."""
    if pa.types.is_dictionary(arrow):
        arrow = arrow.value_type
    if type(spark) is ty.StringType:
        return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow))
    if isinstance(spark, ty.DecimalType):
        return bool(pa.types.is_decimal128(arrow)) and (arrow.precision, arrow.scale) == (spark.precision, spark.scale)
    if isinstance(spark, (ty.TimestampType, ty.TimestampNTZType)):
        zoned = isinstance(spark, ty.TimestampType)
        return bool(pa.types.is_timestamp(arrow)) and arrow.unit == "us" and (arrow.tz is not None) == zoned
    return bool(_ARROW.get(type(spark)) == arrow)

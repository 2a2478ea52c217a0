"""The live job as a process of its own: it takes jobs as lines of JSON, runs each, and answers with a line of JSON.

It is started and killed by `tests.chaos.process`; what it does with a stream is what any user's job does.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cerite import spark
from tests.chaos.payments import DELAY, QUERY, SCHEMA

SMALL = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.minBatchesToRetain": "5",
    "spark.sql.codegen.wholeStage": "false",  # compiling would take longer than running
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def run(session: Any, folder: Path, *, deduplicate: bool) -> None:
    """Read what the source has, from where the checkpoint left off, and write matches and late events."""
    source = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "source"))
    matches = spark.match(
        source,
        QUERY,
        time="at",
        order_by="n",
        watermark=f"{DELAY.seconds} seconds",
        shards=3,
        late="side",
        deduplicate=["n"] if deduplicate else [],
    )
    writer = matches.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.option("path", str(folder / "sink")).trigger(availableNow=True).start()
    query.awaitTermination()


def answer(session: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Run one job; what goes wrong is printed, in Cerite's own words if it is Cerite that refuses."""
    try:
        run(session, Path(job["folder"]), deduplicate=job["deduplicate"])
    except Exception as error:
        own = spark.task_error(error)
        return {"error": str(own if own is not None else error), "of_cerite": own is not None}
    return {"done": True}


def main(master: str) -> None:
    """Serve until the input ends."""
    session = spark.session(master, conf=SMALL)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(session, json.loads(line))), flush=True)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[1])

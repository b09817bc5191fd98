"""Spark's ALS on a Parquet target, in an environment that has pyspark. Reads a request, prints an answer."""

import json
import sys
import time

from pyspark.ml.recommendation import ALS
from pyspark.sql import SparkSession

request = json.loads(sys.argv[1])
spark = (
    SparkSession.builder.master(f"local[{request['cores']}]")
    .config("spark.driver.memory", request["memory"])
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", str(request["blocks"]))
    .config("spark.local.dir", request["work"])
    .getOrCreate()
)
spark.sparkContext.setLogLevel("ERROR")
cells = spark.read.parquet(request["cells"]).cache()
cells.count()  # reading is not part of the fit

seconds = {}
for sweeps in request["sweeps"]:
    start = time.perf_counter()
    model = ALS(
        rank=request["rank"],
        maxIter=sweeps,
        regParam=request["reg"],
        numUserBlocks=request["blocks"],
        numItemBlocks=request["blocks"],
        userCol="row",
        itemCol="col",
        ratingCol="value",
        seed=0,
    ).fit(cells)
    model.userFactors.count(), model.itemFactors.count()
    seconds[sweeps] = time.perf_counter() - start
for side, factors in (("row", model.userFactors), ("col", model.itemFactors)):
    factors.write.parquet(f"{request['work']}/{side}-factors")
spark.stop()
print(json.dumps({"seconds": seconds}))

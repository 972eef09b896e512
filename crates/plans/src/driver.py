"""Statements in, rows out: lines of JSON between demi-lineage and an engine that Python can load.

A request is {"do": "tables"|"query"|"save", ..}; the answer is one line, {"ok": ..} or {"error": ..}. Tables are lists of Parquet
files, whose columns are given. An answer has what the engine itself counted of its scans, where it counts.
"""

import json
import os
import sys
import tempfile


class DuckDb:
    """DuckDB, in this process."""

    TYPES = {"long": "BIGINT", "int": "INTEGER", "text": "VARCHAR", "flag": "BOOLEAN"}

    def __init__(self, _):
        import duckdb

        self.connection = duckdb.connect()
        self.connection.execute("SET enable_profiling = 'no_output'")
        self.connection.execute("SET preserve_insertion_order = false")
        self.version = duckdb.__version__

    def table(self, name, files, columns):
        if files:
            listed = ", ".join("'" + f.replace("'", "''") + "'" for f in files)
            names = ", ".join(f'"{c}"' for c, _ in columns)
            text = f"SELECT {names} FROM read_parquet([{listed}], hive_partitioning = false, union_by_name = true)"
        else:
            nothing = ", ".join(f'CAST(NULL AS {self.TYPES[t]}) AS "{c}"' for c, t in columns)
            text = f"SELECT {nothing} WHERE false"
        self.connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {text}')

    def query(self, text):
        rows = self.connection.execute(text).fetchall()
        return rows, self.counted()

    def save(self, text, path):
        self.connection.execute(f"COPY ({text}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
        return self.counted()

    def counted(self):
        told = json.loads(self.connection.get_profiling_information(format="json") or "{}")
        query = told.get("query", {})
        return {"rows_read": query.get("total_rows_scanned"), "bytes_read": told.get("io", {}).get("total_bytes_read")}


class DataFusion:
    """Apache DataFusion, in this process."""

    TYPES = {"long": "int64", "int": "int32", "text": "string", "flag": "bool_"}

    def __init__(self, _):
        import datafusion

        settings = datafusion.SessionConfig()
        settings = settings.set("datafusion.execution.parquet.pushdown_filters", "true")
        settings = settings.set("datafusion.execution.parquet.reorder_filters", "true")
        self.context = datafusion.SessionContext(settings)
        self.version = datafusion.__version__

    def table(self, name, files, columns):
        import pyarrow

        schema = pyarrow.schema([(c, getattr(pyarrow, self.TYPES[t])()) for c, t in columns])
        if self.context.table_exist(name):
            self.context.deregister_table(name)
        if not files:
            self.context.register_record_batches(name, [[pyarrow.RecordBatch.from_pylist([], schema=schema)]])
            return
        # Tables are folders here: one of links to the files.
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=os.path.dirname(os.path.abspath(__file__)))
        for number, file in enumerate(files):
            os.symlink(os.path.abspath(file), os.path.join(folder, f"{number:08}.parquet"))
        self.context.register_parquet(name, folder, schema=schema)

    def query(self, text):
        frame = self.context.sql(text)
        rows = []
        for batch in frame.collect():
            columns = [column.to_pylist() for column in batch.columns]
            rows.extend(zip(*columns))
        return rows, self.counted(frame.execution_plan())

    def save(self, text, path):
        frame = self.context.sql(text)
        frame.write_parquet(path, compression="zstd")
        # What was counted is of another plan, which wrote the file.
        return {"rows_read": None, "bytes_read": None}

    @staticmethod
    def counted(plan):
        rows = None
        read = None
        for name, metrics in plan.collect_metrics():
            if "DataSource" not in name:
                continue
            rows = (rows or 0) + (metrics.output_rows or 0)
            for metric in metrics.metrics():
                if metric.name == "bytes_scanned":
                    read = (read or 0) + (metric.value or 0)
        return {"rows_read": rows, "bytes_read": read}


class Spark:
    """Apache Spark, by PySpark: a session in this process, or the cluster of a master."""

    TYPES = {"long": "bigint", "int": "int", "text": "string", "flag": "boolean"}

    def __init__(self, master):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.appName("demi-lineage").master(master or "local[2]")
        for key, value in {
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": os.environ.get("DEMI_SPARK_PARTITIONS", "4"),
            "spark.sql.parquet.pushdown.inFilterThreshold": "1000",
            "spark.ui.showConsoleProgress": "false",
        }.items():
            builder = builder.config(key, value)
        self.session = builder.getOrCreate()
        self.session.sparkContext.setLogLevel("ERROR")
        self.version = self.session.version

    def table(self, name, files, columns):
        schema = ", ".join(f"`{c}` {self.TYPES[t]}" for c, t in columns)
        reader = self.session.read.schema(schema)
        frame = reader.parquet(*files) if files else self.session.createDataFrame([], schema)
        frame.createOrReplaceTempView(name)

    def query(self, text):
        frame = self.session.sql(text)
        rows = [tuple(row) for row in frame.collect()]
        return rows, self.counted(frame)

    def save(self, text, path):
        frame = self.session.sql(text)
        frame.write.mode("overwrite").option("compression", "zstd").parquet(path)
        return {"rows_read": None, "bytes_read": None}

    @staticmethod
    def counted(frame):
        """The rows that scans of files gave, by the metrics of the plan that ran."""
        total = {"rows_read": None, "bytes_read": None}

        def visit(plan):
            name = plan.getClass().getSimpleName()
            if name == "AdaptiveSparkPlanExec":
                return visit(plan.executedPlan())
            if name.endswith("QueryStageExec"):
                return visit(plan.plan())
            if name == "ReusedExchangeExec":
                return None
            if "FileSourceScan" in name:
                metric = plan.metrics().get("numOutputRows")
                if metric.isDefined():
                    total["rows_read"] = (total["rows_read"] or 0) + metric.get().value()
                size = plan.metrics().get("filesSize")
                if size.isDefined():
                    total["bytes_read"] = (total["bytes_read"] or 0) + size.get().value()
            children = plan.children()
            for i in range(children.size()):
                visit(children.apply(i))
            return None

        try:
            visit(frame._jdf.queryExecution().executedPlan())
        except Exception:  # Counting is no part of the answer.
            return {"rows_read": None, "bytes_read": None}
        return total


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "spark": Spark}


def files_of(path):
    """The Parquet files that were written to a path, which some engines make a folder of."""
    if os.path.isfile(path):
        return [path]
    return sorted(os.path.join(path, name) for name in os.listdir(path) if name.endswith(".parquet"))


def main():
    # What engines print must not come between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    engine = None

    def answer(value):
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    try:
        engine = ENGINES[sys.argv[1]](sys.argv[2] if len(sys.argv) > 2 else "")
    except Exception as error:
        answer({"error": f"{type(error).__name__}: {error}"})
        return
    answer({"ok": {"version": engine.version}})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if request["do"] == "tables":
                for table in request["tables"]:
                    engine.table(table["name"], table["files"], table["columns"])
                answer({"ok": {}})
            elif request["do"] == "query":
                rows, counted = engine.query(request["sql"])
                answer({"ok": {"rows": rows, **counted}})
            else:
                counted = engine.save(request["sql"], request["path"])
                answer({"ok": {"files": files_of(request["path"]), **counted}})
        except Exception as error:
            answer({"error": f"{type(error).__name__}: {error}"})


main()

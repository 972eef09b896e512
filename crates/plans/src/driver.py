"""Statements in, rows out: lines of JSON between demi-lineage and an engine that Python can load.

A request is {"do": "tables"|"query"|"save", ..}; the answer is one line, {"ok": ..} or {"error": ..}. Tables are lists of Parquet
files, whose columns are given. An answer has what the engine itself counted of its scans, where it counts.
"""

import csv
import json
import os
import queue
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request


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


class Lost(Exception):
    """The cluster, or the way to it, was gone before it answered."""


class Ballista:
    """Apache Ballista: a session of its command line, which sends statements to the scheduler of a cluster.

    Scheduler and executors must see the store's files, and the folder of this script, where small tables are.
    """

    TYPES = {"long": "BIGINT", "int": "INT", "text": "VARCHAR", "flag": "BOOLEAN"}
    SETTINGS = {
        # The adaptive planner of 55.0.0 loses rows: of a union with an empty table, those of the other table too.
        "ballista.planner.adaptive.enabled": "false",
        "datafusion.execution.target_partitions": os.environ.get("DEMI_BALLISTA_PARTITIONS") or "4",
        "datafusion.execution.parquet.pushdown_filters": "true",
        "datafusion.execution.parquet.reorder_filters": "true",
    }
    # How often a statement is sent: executors and schedulers go away, and statements change nothing.
    ATTEMPTS = 3
    # Seconds in which a scheduler that went away must be back, and in which it must answer a knock.
    BACK = 60
    KNOCK = 5
    # Seconds in which a statement must get on once an executor went away: the scheduler of 55.0.0 may forget that the others are free.
    STUCK = 30
    # Of an error, so many characters are told.
    TOLD = 4000

    def __init__(self, place):
        host, _, port = place.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"'{place}' is not HOST:PORT of a scheduler")
        self.host, self.port = host, int(port)
        self.limit = float(os.environ.get("DEMI_BALLISTA_TIMEOUT") or 600)
        self.folder = os.path.dirname(os.path.abspath(__file__))
        self.cli = None
        self.version = ""
        self.tables = {}
        self.asked = 0
        # Since when there is no executor, those that were there last, and whether one went away.
        self.idle = None
        self.staff = set()
        self.lost = False
        self.jobs = f"demi-lineage {os.getpid()} "
        self.session()

    def session(self):
        """A session of the command line, with the tables that the last one had."""
        self.close()
        self.knock()
        self.staffed()
        program = os.environ.get("DEMI_BALLISTA_CLI") or "ballista-cli"
        command = [program, "--host", self.host, "--port", str(self.port), "--format", "csv", "--rc"]
        # Its log would stand between its errors; and a terminal that it takes for dumb gets a prompt.
        environment = {**os.environ, "RUST_LOG": "off", "TERM": "xterm", "NO_COLOR": "1"}
        self.errors = open(os.path.join(self.folder, "ballista.txt"), "ab")
        try:
            # It leaves a history and a folder of logs where it runs.
            self.cli = subprocess.Popen(
                command, cwd=self.folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors
            )
        except OSError as error:
            raise RuntimeError(f"{program} cannot be started (DEMI_BALLISTA_CLI names it): {error}") from error
        self.lines = queue.SimpleQueue()
        threading.Thread(target=self.listen, args=(self.cli.stdout, self.lines), daemon=True).start()
        for key, value in self.SETTINGS.items():
            self.ask(f"SET {key} = {value}")
        for statements in self.tables.values():
            for statement in statements:
                self.ask(statement)

    @staticmethod
    def listen(pipe, lines):
        for line in pipe:
            lines.put(line.decode("utf-8", "replace").rstrip("\r\n"))
        lines.put(None)

    def close(self):
        if self.cli is not None:
            self.cli.kill()
            self.cli.wait()
            self.errors.close()
            self.cli = None

    def knock(self):
        try:
            socket.create_connection((self.host.strip("[]"), self.port), self.KNOCK).close()
        except OSError as error:
            raise Lost(f"no scheduler answers at {self.host}:{self.port}: {error}") from error

    def staffed(self):
        """Fails where the scheduler has had no executors for a while: it would wait for some for ever."""
        try:
            staff = {executor["id"] for executor in self.http("/api/executors")}
        except Exception:  # It may tell nothing.
            staff = self.staff or {""}
        self.lost |= bool(self.staff - staff)
        self.staff = staff
        if staff:
            self.idle = None
        elif self.idle is None:
            self.idle = time.monotonic()
        elif time.monotonic() - self.idle > self.BACK:
            raise Lost(f"the scheduler at {self.host}:{self.port} has no executors")

    def stands(self):
        """How far the statement at hand is, as the scheduler tells it."""
        try:
            jobs = [job for job in self.http("/api/jobs") if job["status"] != "Completed" and job["job_name"].startswith(self.jobs)]
        except Exception:  # It may tell nothing.
            return None
        # It tells them in any order.
        return sorted((job["job_id"], job["completed_stages"], job["percent_complete"]) for job in jobs)

    def ask(self, statement):
        """The rows that a statement prints, the first of them the names of its columns. Its number of rows must be told, too."""
        if self.cli is None:
            raise Lost("there is no session")
        begin = os.fstat(self.errors.fileno()).st_size
        # One line is one statement. What follows it is answered when it is done, whether it could be done or not.
        text = statement.replace("\n", " ") + ";\n\\quiet\n"
        try:
            self.cli.stdin.write(text.encode())
            self.cli.stdin.flush()
        except OSError:
            pass  # It ended, which its lines tell.
        lines = []
        until = time.monotonic() + self.limit
        stood, since = None, time.monotonic()
        while True:
            try:
                line = self.lines.get(timeout=self.KNOCK)
            except queue.Empty:
                # What it cannot read it begins to read anew with the next line, and says nothing more.
                if "Invalid statement" in self.told(begin):
                    raise self.ended(begin, "") from None
                if time.monotonic() > until:
                    raise self.ended(begin, f"no answer in {self.limit:.0f} seconds (DEMI_BALLISTA_TIMEOUT)") from None
                try:
                    self.knock()
                    self.staffed()
                except Lost as error:
                    raise self.ended(begin, str(error)) from None
                stands = self.stands() if self.lost else None
                if stands is None or stands != stood:
                    stood, since = stands, time.monotonic()
                elif time.monotonic() - since > self.STUCK:
                    reason = f"an executor went away, and the scheduler has done nothing more for {self.STUCK} seconds; it may have to begin anew"
                    raise self.ended(begin, reason) from None
                continue
            if line is None:
                raise self.ended(begin, "ballista-cli ended")
            if line.startswith("Quiet mode is "):
                break
            if line.startswith("Ballista CLI v"):
                self.version = line[len("Ballista CLI v") :]
                continue
            lines.append(line)
        ends = [at for at, line in enumerate(lines) if re.match(r"\d+ row\(s\) fetched\.", line)]
        if not ends:
            raise RuntimeError(self.told(begin) or "neither rows nor an error")
        rows = list(csv.reader(line for line in lines[: ends[-1]] if line))
        told = int(lines[ends[-1]].split()[0])
        if len(rows) != told + bool(told):
            raise RuntimeError(f"{told} rows are told and {max(len(rows) - 1, 0)} given")
        return rows

    def told(self, begin):
        """What was said to be wrong since then."""
        with open(self.errors.name, "rb") as file:
            file.seek(begin)
            return file.read().decode("utf-8", "replace").strip()[: self.TOLD]

    def ended(self, begin, reason):
        error = Lost(": ".join(part for part in (reason, self.told(begin)) if part))
        self.close()
        return error

    def repeated(self, ask):
        """Asks, and asks again where something went away in between."""
        for left in reversed(range(self.ATTEMPTS)):
            try:
                if self.cli is None:
                    self.session()
                return ask()
            except (Lost, RuntimeError) as error:
                if left == 0:
                    raise
                print(f"asked again: {error}", file=sys.stderr, flush=True)
            self.wait()

    def wait(self):
        """Waits until there is a scheduler, which may be starting anew."""
        until = time.monotonic() + self.BACK
        while True:
            try:
                return self.knock()
            except Lost:
                self.close()
                if time.monotonic() > until:
                    raise
                time.sleep(1)

    @staticmethod
    def quoted(name):
        return '"' + name.replace('"', '""') + '"'

    @staticmethod
    def text(path):
        if not path.isprintable():
            raise ValueError(f"the path {path!r} has characters that cannot be passed on")
        return "'" + path.replace("'", "''") + "'"

    def table(self, name, files, columns):
        # Tables are folders here: one of links to the files, or of none.
        folder = tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder)
        for number, file in enumerate(files):
            os.symlink(os.path.abspath(file), os.path.join(folder, f"{number:08}.parquet"))
        listed = ", ".join(f"{self.quoted(c)} {self.TYPES[t]}" for c, t in columns)
        told = [
            f"DROP TABLE IF EXISTS {self.quoted(name)}",
            f"CREATE EXTERNAL TABLE {self.quoted(name)} ({listed}) STORED AS PARQUET LOCATION {self.text(folder + '/')}",
        ]
        self.tables[name] = told
        self.repeated(lambda: [self.ask(statement) for statement in told])

    def query(self, text):
        def number(cell):
            return int(cell) if cell else None

        def ask():
            name = self.named()
            rows = [[number(cell) for cell in row] for row in self.ask(text)[1:]]
            return rows, self.counted(name)

        return self.repeated(ask)

    def save(self, text, path):
        def ask():
            # Executors write. What one wrote that was lost stays there, beside what another wrote in its place: so files are counted.
            folder = tempfile.mkdtemp(prefix=os.path.basename(path) + "-", dir=os.path.dirname(os.path.abspath(path)))
            name = self.named()
            wrote = self.ask(f"COPY ({text}) TO {self.text(folder + '/')} STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)')")
            wrote = int(wrote[1][0])
            counted = self.counted(name)
            there = 0
            if files_of(folder):
                saved = self.quoted(f"saved {self.asked}")
                self.ask(f"CREATE EXTERNAL TABLE {saved} STORED AS PARQUET LOCATION {self.text(folder + '/')}")
                there = int(self.ask(f"SELECT count(*) AS n FROM {saved}")[1][0])
                self.ask(f"DROP TABLE {saved}")
            if there != wrote:
                raise Lost(f"{wrote} rows were written, and the files hold {there}")
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif os.path.exists(path):
                os.unlink(path)
            os.rename(folder, path)
            return counted

        return self.repeated(ask)

    def named(self):
        """The name of the next job."""
        self.asked += 1
        name = f"{self.jobs}{self.asked} {time.time_ns()}"
        self.ask(f"SET ballista.job.name = '{name}'")
        return name

    def counted(self, name):
        """The rows that scans gave in the job of a name, by what its scheduler tells. It tells bytes only roughly."""
        nothing = {"rows_read": None, "bytes_read": None}
        try:
            jobs = [job["job_id"] for job in self.http("/api/jobs") if job["job_name"] == name]
            if len(jobs) != 1:
                return nothing
            stages = self.http(f"/api/job/{jobs[0]}/stages?plan_format=metrics")["stages"]
            return {**nothing, "rows_read": self.scanned(stages)}
        except Exception:  # Counting is no part of the answer.
            return nothing

    @staticmethod
    def scanned(stages):
        """The rows that stages read, without those that others of them made: the number of these is told in three digits, and is a multiple."""
        made = {stage["stage_id"]: stage["output_rows"] for stage in stages}
        rows = 0
        for stage in stages:
            rows += stage["input_rows"]
            for line in stage["stage_plan"].splitlines():
                if "ShuffleReaderExec" in line:
                    told = re.search(r"upstream_stage: (\d+),.*metrics=\[output_rows=([0-9.]+)(?: ([KMBT]))?", line)
                    of, size = made[told[1]], float(told[2]) * 1000 ** " KMBT".index(told[3] or " ")
                    rows -= of * round(size / of) if of else 0
        return rows

    def http(self, path):
        with urllib.request.urlopen(f"http://{self.host}:{self.port}{path}", timeout=self.KNOCK) as answer:
            return json.load(answer)


ENGINES = {"duckdb": DuckDb, "datafusion": DataFusion, "ballista": Ballista, "spark": Spark}


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

"""Enqueues bodies of 1 KiB with another queue, and prints the same figures as `QueueBenchmark measure enqueue`.

Usage: peers.py NAME THREADS COUNT SECONDS DIRECTORY
    NAME         persist-queue, huey, litequeue or redis
    THREADS      the number of threads that enqueue; for redis the number of connections
    COUNT        the maximum number of bodies
    SECONDS      the maximum duration
    DIRECTORY    the directory for the data of the queue

Each queue is configured so that accepted data survives a power cut. The script fails if the queue is not installed.
"""

import os
import resource
import shutil
import subprocess
import sys
import threading
import time

BODY = os.urandom(1024)


def persist_queue(directory):
    # WAL, synchronous=FULL and a lock around each commit are the defaults of this queue.
    from persistqueue import SQLiteAckQueue

    return SQLiteAckQueue(directory, multithreading=True).put


def huey(directory):
    # The default is synchronous=FULL. This queue delivers at most once: it deletes a task before the task runs.
    from huey.storage import SqliteStorage

    return SqliteStorage(filename=f"{directory}/huey.db", fsync=True).enqueue


def litequeue(directory):
    # The default is synchronous=NORMAL, with which a power cut may lose accepted data. All threads must share one
    # connection.
    from litequeue import LiteQueue

    queue = LiteQueue(f"{directory}/lite.db")
    queue.conn.execute("PRAGMA synchronous=FULL")
    assert queue.conn.execute("PRAGMA synchronous").fetchone()[0] == 2
    lock = threading.Lock()
    body = BODY.hex()[:1024]

    def put(_):
        with lock:
            queue.put(body)

    return put


def syncs():
    """Returns the number of disk syncs so far, which the preloaded Floors/syncs.c counts."""
    with open(os.environ["FLOORS_SYNCS"], "rb") as file:
        return int.from_bytes(file.read(8), sys.byteorder)


def cpu(who):
    """Returns the CPU time of this process or of its children in seconds."""
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def report(count, seconds, used, synced, middle, slowest):
    """Prints the figures. `middle` and `slowest` are the median and the 99th percentile of the latency in µs."""
    print("rate", count / seconds)
    print("cpu", used / count * 1e6)
    print("syncs", synced / count)
    print("p50", middle)
    print("p99", slowest)


def measure(put, threads, count, seconds):
    """Measures a queue whose function `put` enqueues a body, and prints the figures."""
    times = [[] for _ in range(threads)]
    end = time.monotonic() + seconds

    def produce(own):
        for _ in range(count // threads):
            start = time.monotonic()
            if start >= end:
                break
            put(BODY)
            own.append(time.monotonic() - start)

    before = time.monotonic(), cpu(resource.RUSAGE_SELF), syncs()
    workers = [threading.Thread(target=produce, args=(own,)) for own in times]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    wall, used, synced = time.monotonic() - before[0], cpu(resource.RUSAGE_SELF) - before[1], syncs() - before[2]
    latencies = sorted(1e6 * latency for own in times for latency in own)
    total = len(latencies)
    report(total, wall, used, synced, latencies[total // 2], latencies[total * 99 // 100])


class Redis:
    """A separate Redis server on a unix socket. If Debian's `redis-server` is not installed, the server's program from
    `redis-tools` is used, which is named `redis-check-rdb`. Installing `redis-tools` starts no server."""

    def __init__(self, directory):
        server = shutil.which("redis-server") or shutil.which("redis-check-rdb")
        if not server or not shutil.which("redis-benchmark"):
            sys.exit("`redis-server` or `redis-check-rdb`, and `redis-benchmark`, are not installed")
        self.socket = f"{directory}/redis.sock"
        settings = f"--port 0 --unixsocket {self.socket} --dir {directory} --save '' --appendonly yes "
        settings += "--appendfsync always --auto-aof-rewrite-percentage 0 --daemonize no"
        words = ["redis-server"] + [word.strip("'") for word in settings.split(" ")]
        self.process = subprocess.Popen(words, executable=server, stdout=subprocess.DEVNULL)
        while subprocess.run(self.command("redis-cli", "PING"), capture_output=True).stdout != b"PONG\n":
            if self.process.poll() is not None:
                sys.exit(f"the redis server ended with {self.process.returncode} instead of starting")

    def command(self, program, *arguments):
        return [program, "-s", self.socket, *arguments]

    def add(self, threads, count):
        """Enqueues `count` bodies. Returns the duration in seconds, and the median and the 99th percentile of the
        latency in microseconds."""
        body = BODY.hex()[:1024]
        command = self.command("redis-benchmark", "-c", str(threads), "-n", str(count), "--csv")
        result = subprocess.run(
            command + ["XADD", "stream", "*", "body", body], capture_output=True, text=True, check=True
        )
        # "test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max…"
        fields = [field.strip('"') for field in result.stdout.splitlines()[-1].split('","')]
        return count / float(fields[1]), 1e3 * float(fields[4]), 1e3 * float(fields[6])

    def cpu(self):
        info = subprocess.run(self.command("redis-cli", "INFO", "cpu"), capture_output=True, text=True).stdout
        values = dict(line.split(":") for line in info.split() if ":" in line)
        return float(values["used_cpu_sys"]) + float(values["used_cpu_user"])

    def measure(self, threads, count, seconds):
        # redis-benchmark cannot run until a deadline, so the number of bodies is calculated from a sample.
        count = min(count, max(100, int(500 / self.add(threads, 500)[0] * seconds)))
        before = self.cpu() + cpu(resource.RUSAGE_CHILDREN), syncs()
        wall, middle, slowest = self.add(threads, count)
        used = self.cpu() + cpu(resource.RUSAGE_CHILDREN) - before[0]
        report(count, wall, used, syncs() - before[1], middle, slowest)

    def end(self):
        self.process.terminate()
        self.process.wait()


def main():
    name, threads, count, seconds, directory = sys.argv[1:]
    arguments = int(threads), int(count), float(seconds)
    if name == "redis":
        server = Redis(directory)
        try:
            server.measure(*arguments)
        finally:
            server.end()
        return
    put = {"persist-queue": persist_queue, "huey": huey, "litequeue": litequeue}[name](directory)
    measure(put, *arguments)


main()

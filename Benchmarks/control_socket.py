"""Measures how fast the service accepts and delivers requests, compared with the library, curl and SQLite.

Usage, in a separate network namespace with nginx at 127.0.0.1:80 (web.sh):
control_socket.py NETWATCH QUEUE_BENCHMARK FLOORS PEERS SCRATCH [--quick]
    NETWATCH          the path of the command `netwatch`
    QUEUE_BENCHMARK   the path of QueueBenchmark, which measures the library
    FLOORS            the directory of the compiled Floors/control_socket.c and Floors/transfers.c
    PEERS             the directory of the compiled programs of Peers
    SCRATCH           a directory on the disk to measure
    --quick           one round with few requests, as a smoke test

In each round, netwatch and the compared program are measured one after the other. The first table shows the medians of
the rates and of the ratios of each round. For the second table, 64 clients post requests for a minute, and then the
service is killed. The script fails if the queue lacks a request whose response a client has received.
"""
import json
import os
import shutil
import socket
import sqlite3
import statistics
import subprocess
import sys
import time

URL = "http://127.0.0.1/small"
BODY = "x" * 1024


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout


def figures(output):
    """Returns the figures in the output of a measurement by their names."""
    return {name: float(value) for name, value in (line.split() for line in output.splitlines())}


def rate(output):
    return figures(output)["rate"]


class Service:
    """A service with an empty queue, which runs during a `with` block. Its queue has room for a minute's requests."""

    def __init__(self, netwatch, scratch):
        self.netwatch, self.directory = netwatch, os.path.join(scratch, "service")
        self.socket = os.path.join(self.directory, "socket")

    def __enter__(self):
        os.makedirs(self.directory)
        self.state, config = self.directory + "/state", self.directory + "/netwatch.toml"
        with open(config, "w") as file:
            file.write('[queue.limits]\nrequests = 10000000\nbytes = "20 GiB"\n')
        words = [self.netwatch, "serve", "--config", config, "--state-dir", self.state, "--socket", self.socket]
        self.process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        while subprocess.run([self.netwatch, "queue", "stats", "--socket", self.socket],
                             capture_output=True).returncode != 0:
            if self.process.poll() is not None:
                sys.exit(f"`netwatch serve` ended with {self.process.returncode} instead of starting")
            time.sleep(0.02)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def command(self, *words):
        return run(self.netwatch, *words, "--socket", self.socket)

    def waiting(self):
        """Returns the number of requests that wait or are being sent. Does not start a command for this, so that the
        polling takes little processor time from the service."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(b"GET /v1/queue/stats HTTP/1.1\r\nHost: netwatch\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: connection.recv(65536), b""))
        counts = json.loads(text.split(b"\r\n\r\n", 1)[1])["counts"]
        return counts["pending"] + counts["inflight"]


class Bench:
    def __init__(self, netwatch, library, floors, peers, scratch, quick):
        self.netwatch, self.library, self.floors, self.peers = netwatch, library, floors, peers
        self.scratch, self.count, self.seconds = scratch, 1000 if quick else 8000, 3 if quick else 60

    def service(self):
        return Service(self.netwatch, self.scratch)

    def post(self, service, connections, count, **message):
        """Posts the message `count` times to the control socket. Returns the requests per second."""
        text = json.dumps({"queue": "always", **message})
        return rate(run(self.floors + "/control_socket", service.socket, str(connections), str(count), text))

    def enqueue(self, producers, count):
        """Enqueues requests with the library, for at most a minute. Returns the figures."""
        store = os.path.join(self.scratch, "library")
        os.makedirs(store)
        output = run(self.library, "measure", "enqueue", str(producers), str(count), "60", store)
        shutil.rmtree(store)
        return figures(output)

    def accept(self, connections):
        """Returns the requests accepted per second by the control socket, and by the library with as many producers as
        connections."""
        with self.service() as service:
            service.command("queue", "pause")
            ours = self.post(service, connections, self.count, url="http://192.0.2.1/", method="POST", body=BODY)
        return ours, self.enqueue(connections, self.count)["rate"]

    def curl_loop(self):
        """Returns the GET requests per second of one libcurl handle that reuses its connection."""
        return rate(run(self.floors + "/transfers", "requests", "1", "1", URL))

    def commits(self):
        """Returns the synced SQLite commits of one row per second. A FIFO lane needs one such commit per request."""
        path = os.path.join(self.scratch, "commits")
        database = sqlite3.connect(path, isolation_level=None)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE row (state)")
        database.execute("INSERT INTO row VALUES (0)")
        start = time.monotonic()
        for number in range(self.count):
            database.execute("UPDATE row SET state = ?", (number,))
        seconds = time.monotonic() - start
        database.close()
        for suffix in ("", "-wal", "-shm"):
            if os.path.exists(path + suffix):
                os.remove(path + suffix)
        return self.count / seconds

    def drain(self, **message):
        """Returns the requests delivered per second after a paused queue is resumed."""
        with self.service() as service:
            service.command("queue", "pause")
            self.post(service, 16, self.count, url=URL, **message)
            start = time.monotonic()
            service.command("queue", "resume")
            while service.waiting() > 0:
                time.sleep(0.02)
            return self.count / (time.monotonic() - start)

    def processes(self):
        """Returns the sequential commands per second: of `netwatch send`, and of curl with the same message."""
        count = self.count // 40
        with self.service() as service:
            service.command("queue", "pause")
            url = "http://192.0.2.1/"
            send = [self.netwatch, "send", "--socket", service.socket, "--queue", "always", url, "-d", BODY]
            message = json.dumps({"queue": "always", "url": url, "method": "POST", "body": BODY})
            curl = ["curl", "--silent", "--fail", "--unix-socket", service.socket, "--json", message,
                    "http://netwatch/v1/requests"]
            return tuple(self.repeated(words, count) for words in (send, curl))

    @staticmethod
    def repeated(words, count):
        """Runs a command `count` times, one after the other. Returns the commands per second."""
        start = time.monotonic()
        for _ in range(count):
            run(*words)
        return count / (time.monotonic() - start)

    def load(self, socket_path, end):
        """Posts requests over 64 connections until `self.seconds` have passed and the function `end` has ended the
        server. Returns the figures and the ids of the accepted requests."""
        path = os.path.join(self.scratch, "ids")
        message = json.dumps({"queue": "always", "url": "http://192.0.2.1/", "method": "POST", "body": BODY})
        clients = subprocess.Popen([self.floors + "/control_socket", socket_path, "64", "1000000000", message, path],
                                   stdout=subprocess.PIPE, text=True)
        time.sleep(self.seconds)
        end()
        output, _ = clients.communicate()
        if clients.returncode != 0:
            sys.exit(f"the clients ended with {clients.returncode}")
        with open(path) as file:
            ids = file.read().split()
        os.remove(path)
        return figures(output), ids

    def load_of_service(self):
        """Returns the figures of the load, and how many accepted requests the queue has and lacks after SIGKILL."""
        with self.service() as service:
            service.command("queue", "pause")
            measured, ids = self.load(service.socket, service.kill)
            words = [self.netwatch, "queue", "list", "--state-dir", service.state, "-n", "10000000", "--format", "json"]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as listing:
                kept = {json.loads(line)["id"] for line in listing.stdout}
        return measured, len(ids), len(set(ids) - kept)

    def load_of_server(self):
        """Returns the figures of the load on a server that does nothing; `None` if it could not be built."""
        program, path = self.peers + "/NIOServerPeer", os.path.join(self.scratch, "nio")
        if not os.path.exists(program):
            return None
        server = subprocess.Popen([program, path])
        while not os.path.exists(path):
            if server.poll() is not None:
                sys.exit(f"{program} ended with {server.returncode}")
            time.sleep(0.02)
        measured, _ = self.load(path, server.kill)
        server.wait()
        os.remove(path)
        return measured

    def load_table(self):
        """Prints the table of the load. Returns the number of accepted requests that were lost."""
        ours, accepted, lost = self.load_of_service()
        print(f"\n| {self.seconds} s, 64 connections | per second | p50 | p99 |\n|---|---|---|---|")
        for name, measured in (("service", ours), ("library, 64 producers", self.enqueue(64, min(accepted, 450000))),
                               ("NIO server that does nothing", self.load_of_server())):
            cells = "{rate:.0f} | {p50:.0f} µs | {p99:.0f} µs".format(**measured) if measured else "missing | |"
            print(f"| {name} | {cells} |", flush=True)
        print(f"\nAfter SIGKILL, the queue had {accepted - lost} of the {accepted} requests that it had accepted.")
        return lost

    def rows(self):
        """Yields the rows of the table: name, compared program, smallest accepted ratio, and a function that returns
        both rates."""
        yield "accepted over 64 connections", "library, 64 producers", 0.6, lambda: self.accept(64)
        yield "accepted over one connection", "library, one producer", 0.6, lambda: self.accept(1)
        yield "delivered, parallel", "curl loop", None, lambda: (self.drain(), self.curl_loop())
        yield "delivered, FIFO", "curl loop", 0.5, lambda: (self.drain(fifo=True), self.curl_loop())
        yield "delivered, FIFO", "synced SQLite commits", None, lambda: (self.drain(fifo=True), self.commits())
        yield "`send` commands", "curl commands", 0.8, self.processes


def main():
    quick = "--quick" in sys.argv
    bench = Bench(*sys.argv[1:6], quick)
    print("| per second | ours | compared with | | ratio | aim |\n|---|---|---|---|---|---|")
    for name, other, aim, measure in bench.rows():
        figures = [measure() for _ in range(1 if quick else 5)]
        ours, base = (statistics.median(side) for side in zip(*figures))
        ratio = statistics.median(a / b for a, b in figures)
        print(f"| {name} | {ours:.0f} | {other} | {base:.0f} | {ratio:.2f} | {aim or ''} |", flush=True)
    if bench.load_table() > 0:
        sys.exit("error: accepted requests were lost")


if __name__ == "__main__":
    main()

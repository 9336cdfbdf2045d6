"""Measures the time from the return of the network to the first byte of a waiting request at the server.

Usage, in a separate network namespace: link_up.py FLOOR NETWATCH SCRATCH [--quick] [--rounds N]
    FLOOR       the compiled Floors/link_up.c, a C program that waits for netlink notifications and connects at once
    NETWATCH    the path of the command
    SCRATCH     a directory for the queue
    --rounds    the number of rounds, 200 by default; --quick means 20

In each round the network is lost and restored once for each program. The program has a request to send, and waits. The
server records when the first byte of the request arrives. The same process restores the network, so one clock measures
both times. The rounds alternate between two losses:

    carrier    the far end of the link is taken down and up
    address    the address of the link is removed, and the route with it. Both are added again, as a DHCP client does
"""
import ctypes
import fcntl
import json
import os
import queue
import random
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time

SERVER, PORT = "198.51.100.7", 8080
NEAR, FAR = "192.0.2.1", "192.0.2.2"
# Longer than any program but curl needs; a missing response is reported as this time.
LIMIT = 20


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Server:
    """Records when the first byte of each request arrives."""

    def __init__(self):
        self.listener = socket.create_server((SERVER, PORT), backlog=128)
        self.arrivals = queue.Queue()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                text = connection.recv(1)
                now = time.monotonic()
                while text and b"\r\n\r\n" not in text:
                    text += connection.recv(4096)
                if text:
                    self.arrivals.put((text.split()[1].decode(), now))
                    connection.sendall(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
            except OSError:
                pass

    def first(self, target):
        """Waits for a request for the target and returns the time of its first byte; None if there is none."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                found, now = self.arrivals.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                return None
            if found == target:
                return now


class Network:
    """A link from this namespace to another one, `near`, in which the measured programs run."""

    def __init__(self):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.path = f"/proc/{self.holder.pid}/ns/net"
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(self.path) == own:
            time.sleep(0.01)
        for words in ("link add near0 type veth peer name far0", f"link set near0 netns {self.holder.pid}",
                      "link set lo up", f"addr add {SERVER}/32 dev lo", f"addr add {FAR}/24 dev far0",
                      "link set far0 up"):
            run("ip", *words.split())
        for words in ("link set lo up", f"addr add {NEAR}/24 dev near0", "link set near0 up",
                      f"route add {SERVER} via {FAR}"):
            run(*self.inside("ip", *words.split()))
        # Otherwise the kernel would hold packets back for up to a second after the carrier has returned.
        peer = json.loads(run("ip", "-j", "link", "show", "far0"))[0]["address"]
        run(*self.inside("ip", "neigh", "replace", FAR, "lladdr", peer, "dev", "near0", "nud", "permanent"))
        self.index = json.loads(run(*self.inside("ip", "-j", "link", "show", "near0")))[0]["ifindex"]
        self.control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.netlink = self.opened_inside(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))

    def inside(self, *command):
        return ("nsenter", f"--net={self.path}", "--", *command)

    def opened_inside(self, make):
        """Returns a socket that belongs to the other namespace."""
        sockets = []

        def enter():
            with open(self.path) as namespace:
                if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), 0) != 0:
                    sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
            sockets.append(make())

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        return sockets[0]

    def set_link(self, is_up):
        # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP.
        request = struct.pack("16sH22x", b"far0", 0)
        flags = struct.unpack("16sH22x", fcntl.ioctl(self.control, 0x8913, request))[1]
        flags = flags | 1 if is_up else flags & ~1
        fcntl.ioctl(self.control, 0x8914, struct.pack("16sH22x", b"far0", flags))

    def change(self, kind, flags, body):
        # NLM_F_REQUEST | NLM_F_ACK.
        self.netlink.send(struct.pack("IHHII", 16 + len(body), kind, flags | 5, 0, 0) + body)
        error = struct.unpack_from("i", self.netlink.recv(4096), 16)[0]
        if error:
            sys.exit(f"rtnetlink: {os.strerror(-error)}")

    def set_address(self, is_there):
        address = struct.pack("HH4s", 8, 2, socket.inet_aton(NEAR))  # IFA_LOCAL
        message = struct.pack("BBBBI", socket.AF_INET, 24, 0, 0, self.index) + address
        # RTM_NEWADDR with NLM_F_CREATE, RTM_DELADDR.
        self.change(*((20, 0x400) if is_there else (21, 0)), message)

    def add_route(self):
        # RTM_NEWROUTE with NLM_F_CREATE | NLM_F_REPLACE: table main, protocol static, scope universe, unicast.
        message = struct.pack("BBBBBBBBI", socket.AF_INET, 32, 0, 0, 254, 4, 0, 1, 0)
        message += struct.pack("HH4s", 8, 1, socket.inet_aton(SERVER)) + struct.pack("HH4s", 8, 5, socket.inet_aton(FAR))
        self.change(24, 0x500, message)

    def lose(self, kind):
        if kind == "carrier":
            self.set_link(False)
        else:
            self.set_address(False)

    def restore(self, kind):
        """Restores the network and returns the time before that."""
        start = time.monotonic()
        if kind == "carrier":
            self.set_link(True)
        else:
            self.set_address(True)
            self.add_route()
        return start


class Service:
    """`netwatch serve` with an empty queue."""

    def __init__(self, network, netwatch, directory, options=()):
        os.makedirs(directory)
        self.socket = os.path.join(directory, "socket")
        words = [netwatch, "serve", "--state-dir", directory + "/state", "--socket", self.socket, *options]
        self.process = subprocess.Popen(network.inside(*words), stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if line.rstrip().endswith("ready"):
                break
        else:
            sys.exit("`netwatch serve` ended instead of starting")
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def call(self, method, target, message=None):
        body = json.dumps(message).encode() if message else b""
        head = (f"{method} {target} HTTP/1.1\r\nHost: netwatch\r\nConnection: close\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n")
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.socket)
            connection.sendall(head.encode() + body)
            text = b"".join(iter(lambda: connection.recv(65536), b""))
        return json.loads(text.split(b"\r\n\r\n", 1)[1])

    def start(self, target):
        """Enqueues a request and waits until the queue waits for the network."""
        url = f"http://{SERVER}:{PORT}{target}"
        self.id = self.call("POST", "/v1/requests", {"url": url, "method": "POST", "queue": "always"})["id"]
        end = time.monotonic() + LIMIT
        while self.entry().get("waits_for") != "network":
            if time.monotonic() > end:
                sys.exit(f"the queue does not wait for the network: {self.entry()}")
            time.sleep(0.005)

    def entry(self):
        return self.call("GET", f"/v1/requests/{self.id}")["request"]

    def finish(self):
        state = self.call("GET", f"/v1/requests/{self.id}?wait=20")["request"]["state"]
        if state != "delivered":
            sys.exit(f"the request is {state}")

    def close(self):
        self.process.terminate()
        self.process.wait()


class Program:
    """A program that is started in each round.

    The command contains `{url}` and `{target}`. If `is_ready_line` is set, its first line says that it waits.
    """

    def __init__(self, network, command, is_ready_line=False):
        self.network, self.command, self.is_ready_line = network, command, is_ready_line

    def start(self, target):
        url = f"http://{SERVER}:{PORT}{target}"
        words = [word.format(url=url, target=target) for word in self.command]
        self.process = subprocess.Popen(self.network.inside(*words), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, start_new_session=True)
        if self.is_ready_line:
            self.process.stdout.readline()

    def finish(self):
        # The dispatcher's `ip monitor` would end only with its next line of output.
        try:
            self.process.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process.stdout.close()

    def close(self):
        pass


# Like a dispatcher script of NetworkManager: each event starts a program.
DISPATCHER = """
ip monitor link address route | while read -r line; do
    curl --silent --noproxy '*' --max-time 5 --output /dev/null {url} && exit
done
"""


def percentile(values, share):
    return sorted(values)[int((len(values) - 1) * share)]


def measure(network, server, program, kind, target):
    network.lose(kind)
    # The kernel reports a lost carrier a moment later.
    time.sleep(0.2)
    program.start(target)
    # Long enough for a program to start, and random, so that the phase of curl's delay is random.
    time.sleep(random.uniform(0.2, 1.2))
    start = network.restore(kind)
    first = server.first(target)
    program.finish()
    return LIMIT if first is None else first - start


def table(figures, kind):
    floor = figures[kind]["floor"]
    print(f"\n| {kind}, {len(floor)} rounds | p50, ms | p99, ms | p50 − floor, ms | p99 − floor, ms "
          "| median of the differences in a round, ms |\n|---|---|---|---|---|---|")
    for name, times in figures[kind].items():
        values = [percentile(times, 0.5), percentile(times, 0.99), percentile(times, 0.5) - percentile(floor, 0.5),
                  percentile(times, 0.99) - percentile(floor, 0.99),
                  statistics.median(a - b for a, b in zip(times, floor))]
        words = [f"{value * 1000:.1f}" for value in values]
        if name == "floor":
            words[2:] = ["", "", ""]
        print(f"| {name} | {' | '.join(words)} |")


def main():
    floor, netwatch, scratch = sys.argv[1:4]
    rounds = int(sys.argv[sys.argv.index("--rounds") + 1]) if "--rounds" in sys.argv else 200
    if "--quick" in sys.argv:
        rounds = 20
    network = Network()
    server = Server()
    programs = {
        "floor": Program(network, [floor, SERVER, str(PORT), "{target}"], is_ready_line=True),
        "netwatch serve": Service(network, netwatch, os.path.join(scratch, "service")),
        "curl --retry": Program(network, ["curl", "--silent", "--noproxy", "*", "--output", "/dev/null", "--retry",
                                          "1000", "--retry-delay", "1", "--retry-all-errors", "--connect-timeout", "2",
                                          "{url}"]),
        "dispatcher script": Program(network, ["sh", "-c", DISPATCHER]),
    }
    figures = {kind: {name: [] for name in programs} for kind in ("carrier", "address")}
    try:
        for number in range(rounds):
            kind = list(figures)[number % 2]
            for name in random.sample(list(programs), len(programs)):
                target = f"/{name.split()[0]}-{number}"
                figures[kind][name].append(measure(network, server, programs[name], kind, target))
    finally:
        for program in programs.values():
            program.close()
        network.holder.kill()
    for kind in figures:
        table(figures, kind)
    print("\naim for netwatch: p50 at most 5 ms, p99 at most 50 ms behind the floor")


main()

"""Measures the time to the first byte from a server with several addresses, of which only one responds.

Usage, in a separate network namespace: addresses.py FLOOR CLIENT [--quick]
    FLOOR     the compiled Floors/race.c, a minimal C program
    CLIENT    the path of ClientBenchmark
    --quick   measures only the last position and only once

The other addresses are dead (they drop packets) or refuse connections. The address that responds is tested at each
position in the list. The script measures the C program, netwatch and the command line tool curl, and prints a table.
"""
import socketserver
import statistics
import subprocess
import sys
import threading

PORT = 8080
ALIVE = {4: "127.1.0.1", 6: "fd00:1::1"}


def address(family, kind, number):
    """Returns an address that does not respond: a dead one behind the veth pair, or one on the loopback interface,
    which refuses connections."""
    if family == 4:
        return f"10.0.0.{number}" if kind == "dead" else f"127.2.0.{number}"
    return f"fd00:a::{number}" if kind == "dead" else f"fd00:2::{number}"


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def lay_cable():
    """Creates the veth pair, the addresses and the routes."""
    neighbour = ("lladdr", "02:00:00:00:00:01", "dev", "near0", "nud", "permanent")
    for words in (
        "link set lo up",
        "link add near0 type veth peer name far0",
        "link set far0 up",
        "link set near0 up",
        "addr add 192.0.2.1/24 dev near0",
        "addr add fd00:b::1/64 dev near0 nodad",
        "route add 10.0.0.0/8 via 192.0.2.2",
        "-6 route add fd00:a::/64 via fd00:b::2",
        "-6 addr add fd00:1::1/128 dev lo nodad",
        "-6 route add local fd00:2::/64 dev lo",
    ):
        run("ip", *words.split())
    run("ip", "neigh", "replace", "192.0.2.2", *neighbour)
    run("ip", "-6", "neigh", "replace", "fd00:b::2", *neighbour)


class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.recv(4096)
        self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def serve():
    """Starts a server on the address of each family that responds."""
    for family in (4, 6):
        class Server(socketserver.ThreadingTCPServer):
            address_family = 2 if family == 4 else 10
            allow_reuse_address = True
            daemon_threads = True

        server = Server((ALIVE[family], PORT), Answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()


def seconds(output):
    """Returns the number at the end of a program's output."""
    return float(output.split()[-1])


def run_curl(addresses):
    """Returns curl's seconds to the first byte, or None if there is no byte within 10 s. The caller runs curl only once
    per position, because it takes long."""
    curl = subprocess.run(
        ["curl", "--silent", "--noproxy", "*", "--max-time", "10", "--output", "/dev/null",
         "--write-out", "%{time_starttransfer}", "--resolve", f"netwatch.invalid:{PORT}:{addresses}",
         f"http://netwatch.invalid:{PORT}/"], capture_output=True, text=True)
    return float(curl.stdout) if curl.returncode == 0 else None


def sets(quick):
    """Yields the families, the kind of the other addresses, the position of the address that responds (from 1), and the
    addresses in order."""
    for families, size in (([4], 2), ([4], 4), ([4], 8), ([6, 4], 8), ([6, 4], 16)):
        places = [size - 1] if quick else range(size)
        for kind in ("dead", "refusing"):
            for place in places:
                family = lambda i: families[i % len(families)]
                yield f"{size} {'IPv6 and IPv4' if len(families) == 2 else 'IPv4'}", kind, place + 1, [
                    ALIVE[family(i)] if i == place else address(family(i), kind, i + 1) for i in range(size)
                ]


def main():
    floor, client = sys.argv[1:3]
    quick = "--quick" in sys.argv
    lay_cable()
    serve()
    worst = 0
    print("| addresses | others | place | floor, ms | netwatch − floor, ms | curl − floor, ms |\n|---|---|---|---|---|---|")
    for name, kind, place, addresses in sets(quick):
        figures = {"floor": [], "ours": []}
        resolved = ",".join(f"[{a}]" if ":" in a else a for a in addresses)
        for _ in range(1 if quick else 3):
            figures["floor"].append(seconds(run(floor, str(PORT), *addresses)))
            figures["ours"].append(seconds(run(client, "measure", "addresses", str(PORT), *addresses)))
        base, ours = (statistics.median(figures[k]) * 1000 for k in ("floor", "ours"))
        worst = max(worst, ours - base)
        curl = run_curl(resolved)
        late = f"{curl * 1000 - base:.0f}" if curl else "none in 10 s"
        print(f"| {name} | {kind} | {place} | {base:.0f} | {ours - base:.0f} | {late} |", flush=True)
    print(f"\nfurthest behind the floor: {worst:.0f} ms (aim: 50)")


main()

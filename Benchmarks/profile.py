"""Prints where the clients spend their CPU time for a small request, in µs per request.

Usage, within web.sh: profile.py FLOORS BENCHMARK PEERS [--quick]
    FLOORS     the directory of the compiled Floors/transfers.c
    BENCHMARK  the path of ClientBenchmark
    PEERS      the directory of AsyncHTTPClientPeer, which may be missing
    --quick    takes a tenth of the time

perf(1) takes samples of the running function. A row shows how the CPU time of a client is divided among kinds of
functions; the functions called by them count for their own kind.
"""
import collections
import os
import re
import subprocess
import sys
import tempfile

URL = "http://127.0.0.1/small"
IN_FLIGHT = 64
# The kinds of functions, in the order in which they are tried. The first expression matches the library, the second the
# function.
KINDS = [
    ("kernel", r"kernel|vdso", r""),
    ("libcurl", r"libcurl|libssl|libcrypto|libnghttp2", r""),
    ("memory", r"", r"^(_int_(malloc|free|realloc)|__libc_(malloc|free|calloc|realloc)|malloc\w*|cfree\S*|free|calloc"
        r"|realloc|tcache_\w+|unlink_chunk\S*|sysmalloc|swift_(slow)?(Alloc|Dealloc)\w*|swift_(alloc|dealloc)\w+)"),
    ("references", r"", r"^(swift_(\w*[rR]etain|\w*[rR]elease|weak|unowned|isUniquely|bridge)\w*|.*RefCount.*)"),
    ("casts, exclusivity", r"", r"^(swift_(begin|end)Access|swift_dynamicCast|swift_conforms|swift_get"
        r"|swift_task_isCurrent|.*AccessSet|.*SwiftTLSContext|__tls_get_addr|__swift_instantiate|swift_checkMetadata)"),
    ("copies of values", r"", r"(initializeWith(Copy|Take)|assignWith(Copy|Take)|^destroy for|outlined|swift_array"
        r"|_swift_pod)|^(__mem(cpy|move|set)|memcpy|memmove)"),
    ("Dispatch", r"libdispatch|libswiftDispatch|BlocksRuntime", r""),
    ("Foundation", r"Foundation|ICU", r""),
    ("Swift's libraries", r"libswift", r""),
    ("C library", r"libc\.so|ld-linux|libm\.so|libpthread", r""),
    ("own code", r"", r""),
]


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def kind(function, library):
    return next(name for name, where, what in KINDS if re.search(where, library) and re.search(what, function))


def profile(command, scratch):
    """Runs a client. Returns its CPU time per request in µs, and the share of each kind of function."""
    samples = os.path.join(scratch, "perf.data")
    output = run("perf", "record", "-q", "-F", "4000", "-o", samples, *command)
    # Each line is an address, a function, and a library in parentheses.
    lines = run("perf", "script", "-i", samples, "-F", "ip,sym,dso").splitlines()
    names = [line.split(maxsplit=1)[1].rsplit("(", 1) for line in lines if "(" in line]
    functions = subprocess.run(
        ["swift", "demangle", "--simplified"], input="\n".join(name[0].strip() for name in names),
        check=True, capture_output=True, text=True,
    ).stdout.split("\n")
    counts = collections.Counter(kind(function, name[1]) for function, name in zip(functions, names))
    figures = dict(line.split() for line in output.splitlines())
    return float(figures["cpu"]), {name: count / counts.total() for name, count in counts.items()}


def main():
    floors, benchmark, peers = sys.argv[1:4]
    seconds = "0.3" if "--quick" in sys.argv else "3"
    commands = {
        "floor": [f"{floors}/transfers", "requests"],
        "engine": [benchmark, "measure", "requests", "transport"],
        "session": [benchmark, "measure", "requests", "session"],
        "async-http-client": [f"{peers}/AsyncHTTPClientPeer", "requests"],
    }
    with tempfile.TemporaryDirectory() as scratch:
        profiles = {
            client: profile([*command, str(IN_FLIGHT), seconds, URL], scratch)
            for client, command in commands.items() if os.path.exists(command[0])
        }
    print(f"CPU time in µs per request, {IN_FLIGHT} in flight")
    print(f"{'':20}" + "".join(f"{client:>20}" for client in profiles))
    print(f"{'all':20}" + "".join(f"{cpu:20.1f}" for cpu, _ in profiles.values()))
    for name, _, _ in KINDS:
        print(f"{name:20}" + "".join(f"{cpu * shares.get(name, 0):20.1f}" for cpu, shares in profiles.values()))


if __name__ == "__main__":
    main()

internal import BenchmarkSupport

extension Series {
    /// - Parameters:
    ///   - isQuick: Whether to run a tenth of everything, as a smoke test.
    ///   - command: The path of the built `netwatch`.
    static func all(isQuick: Bool, command: String) -> [Series] {
        let (rounds, tenth) = isQuick ? (2, 10) : (5, 1)
        return [
            edges(rounds, 1000 / tenth), churn(rounds, 200_000 / tenth, filters: true),
            churn(rounds, 200_000 / tenth, filters: false), memory(1_000_000 / tenth), lookups(rounds),
            hosts(10_000, rounds), hosts(100_000, isQuick ? 1 : 3), idle(60 / tenth),
            start(20 / rounds, command), resolving(100, rounds), following(60 / tenth),
            links(4000, 100 / tenth, rounds),
        ]
    }

    private static func edges(_ rounds: Int, _ changes: Int) -> Series {
        let aim = Figure.Aim.atMost(2, plus: 20)
        return Series(
            title: "a route added and deleted \(rounds * changes) times, from the change to the status",
            ours: "edges \(changes) 13",
            others: [.floor("edges \(changes) 13")],
            rounds: rounds,
            figures: [
                Figure("reachable.thread.p50", "µs", aims: [aim]),
                Figure("reachable.thread.p99", "µs"),
                Figure("reachable.queue.p50", "µs", aims: [aim]),
                Figure("notReachable.thread.p50", "µs", aims: [aim]),
                Figure("notReachable.thread.p99", "µs"),
                Figure("notReachable.queue.p50", "µs", aims: [aim]),
            ]
        )
    }

    private static func churn(_ rounds: Int, _ routes: Int, filters: Bool) -> Series {
        Series(
            title: "\(routes) unrelated routes added, then deleted; filter \(filters ? "on" : "off"); "
                + "compared with `ip monitor route`",
            ours: "churn \(routes) \(filters ? 1 : 0)",
            others: [.measured("ip monitor", by: "peer-churn \(routes)")],
            rounds: min(rounds, 3),
            figures: [
                Figure("churn.wakeUps", "", aims: filters ? [.atMost(plus: 0)] : []),
                Figure("churn.cpu", "ms"),
            ]
        )
    }

    private static func memory(_ routes: Int) -> Series {
        Series(
            title: "resident memory while the table grows to \(routes) routes, filter off",
            ours: "memory 1 1000 \(routes)",
            rounds: 1,
            figures: [
                Figure("routes.1", "KiB"), Figure("routes.1000", "KiB"),
                Figure("routes.\(routes)", "KiB"),
                Figure("routes.growth", "×", aims: [.atMost(plus: 1.1)]),
            ]
        )
    }

    private static func lookups(_ rounds: Int) -> Series {
        Series(
            title: "10,000 hosts looked up again",
            ours: "lookups 10000 5",
            others: [.floor("lookups 10000 5 500")],
            rounds: 2 * rounds,
            figures: [
                Figure("recompute.cpu", "ms", aims: [.atMost(1.5)]),
                Figure("recompute.wall", "ms"),
            ]
        )
    }

    private static func hosts(_ count: Int, _ rounds: Int) -> Series {
        Series(
            title: "\(count) hosts watched, and a route change that concerns ten of them",
            ours: "hosts \(count) 8",
            rounds: rounds,
            figures: [
                Figure("hosts.memory", "B per host", aims: [.atMost(plus: 1024)]),
                Figure("tenOfMany.lookups", "", aims: [.atMost(plus: 10)]),
                Figure("tenOfMany.p50", "µs"),
                Figure("tenOfMany.meanwhile.p50", "µs"),
            ]
        )
    }

    private static func idle(_ seconds: Int) -> Series {
        Series(
            title: "100 hosts watched for \(seconds) s in which nothing happens",
            ours: "idle \(seconds)",
            rounds: 1,
            figures: [Figure("idle.wakeUps", ""), Figure("idle.cpu", "ms")]
        )
    }

    private static func links(_ addresses: Int, _ changes: Int, _ rounds: Int) -> Series {
        Series(
            title: "\(changes) changes of an interface while another one has \(addresses) addresses, "
                + "compared with one address",
            ours: "links \(addresses) \(changes)",
            others: [.measured("1 address", by: "links 1 \(changes)")],
            rounds: min(rounds, 3),
            figures: [Figure("links.cpu", "ms", aims: [.atMost(2)])]
        )
    }

    private static func resolving(_ silent: Int, _ rounds: Int) -> Series {
        Series(
            title: "200 names looked up while \(silent) others are silent, compared with an idle resolver",
            ours: "resolving \(silent) 200",
            others: [.measured("idle", by: "resolving 0 200")],
            rounds: rounds,
            figures: [
                Figure("resolver.threads", "", aims: [.atMost(plus: 128)]),
                Figure("resolver.memory", "KiB"),
                Figure("healthy.p50", "µs"),
                Figure("healthy.p99", "µs"),
            ]
        )
    }

    private static func following(_ seconds: Int) -> Series {
        Series(
            title: "10,000 names watched for \(seconds) s while no record changes",
            ours: "following 10000 \(seconds)",
            rounds: 1,
            figures: [Figure("following.lookups", ""), Figure("following.cpu", "ms")]
        )
    }

    private static func start(_ starts: Int, _ command: String) -> Series {
        Series(
            title: "`netwatch host 127.0.0.1 --once`, from its start to its first line",
            ours: "start \(starts) \(command) host 127.0.0.1 --once",
            others: [.measured("floor", by: "start \(starts) FLOORS/once 127.0.0.1")],
            rounds: 5,
            figures: [Figure("start", "ms")]
        )
    }
}

/// One measurement and what it is compared with, run in turn, several times.
struct Series {
    let title: String
    /// Arguments of this program.
    let ours: String
    /// What is run beside it; `nil` where there is nothing to compare with.
    var other: Other?
    let rounds: Int
    let figures: [Figure]

    /// What selects it: the name of our measurement.
    var name: String {
        String(ours.prefix { $0 != " " })
    }

    enum Other {
        /// A program of `Benchmarks/Floors` with its arguments.
        case floor(String)
        /// Another program, measured by this one: its arguments.
        case peer(String)
    }
}

/// One of the figures that a measurement prints.
struct Figure {
    let name: String
    let unit: String
    var aim: Aim?

    /// What ours is to be at most: so many times the other's, plus so many units.
    struct Aim {
        var factor = 0.0
        var plus = 0.0

        var text: String {
            let parts = [factor > 0 ? "\(factor) × floor" : nil, plus > 0 || factor == 0 ? "\(plus)" : nil]
            return "≤ " + parts.compactMap(\.self).joined(separator: " + ")
        }
    }
}

extension Series {
    /// - Parameters:
    ///   - isQuick: A tenth of everything, to see that it runs.
    ///   - command: The built `netwatch`.
    static func all(isQuick: Bool, command: String) -> [Series] {
        let (rounds, tenth) = isQuick ? (2, 10) : (5, 1)
        return [
            edges(rounds, 1000 / tenth), churn(rounds, 200_000 / tenth, filters: true),
            churn(rounds, 200_000 / tenth, filters: false), memory(1_000_000 / tenth), lookups(rounds),
            hosts(10_000, rounds), hosts(100_000, isQuick ? 1 : 3), idle(60 / tenth),
            start(20 / rounds, command),
        ]
    }

    private static func edges(_ rounds: Int, _ changes: Int) -> Series {
        let aim = Figure.Aim(factor: 2, plus: 20)
        return Series(
            title: "\(rounds * changes) changes of a route each way, from the change to the status",
            ours: "edges \(changes) 13",
            other: .floor("edges \(changes) 13"),
            rounds: rounds,
            figures: [
                Figure(name: "reachable.thread.p50", unit: "µs", aim: aim),
                Figure(name: "reachable.thread.p99", unit: "µs"),
                Figure(name: "reachable.queue.p50", unit: "µs", aim: aim),
                Figure(name: "notReachable.thread.p50", unit: "µs", aim: aim),
                Figure(name: "notReachable.thread.p99", unit: "µs"),
                Figure(name: "notReachable.queue.p50", unit: "µs", aim: aim),
            ]
        )
    }

    private static func churn(_ rounds: Int, _ routes: Int, filters: Bool) -> Series {
        Series(
            title: "\(routes) routes of no concern added, then deleted; filter \(filters ? "on" : "off"); "
                + "beside `ip monitor route`",
            ours: "churn \(routes) \(filters ? 1 : 0)",
            other: .peer("peer-churn \(routes)"),
            rounds: min(rounds, 3),
            figures: [
                Figure(name: "churn.wakeUps", unit: "", aim: filters ? Figure.Aim(plus: 0) : nil),
                Figure(name: "churn.cpu", unit: "ms"),
            ]
        )
    }

    private static func memory(_ routes: Int) -> Series {
        Series(
            title: "resident memory while the table grows to \(routes) routes, filter off",
            ours: "memory 1 1000 \(routes)",
            rounds: 1,
            figures: [
                Figure(name: "routes.1", unit: "KiB"), Figure(name: "routes.1000", unit: "KiB"),
                Figure(name: "routes.\(routes)", unit: "KiB"),
                Figure(name: "routes.growth", unit: "×", aim: Figure.Aim(plus: 1.1)),
            ]
        )
    }

    private static func lookups(_ rounds: Int) -> Series {
        Series(
            title: "10,000 hosts looked up anew",
            ours: "lookups 10000 5",
            other: .floor("lookups 10000 5 500"),
            rounds: 2 * rounds,
            figures: [
                Figure(name: "recompute.cpu", unit: "ms", aim: Figure.Aim(factor: 1.5)),
                Figure(name: "recompute.wall", unit: "ms"),
            ]
        )
    }

    private static func hosts(_ count: Int, _ rounds: Int) -> Series {
        Series(
            title: "\(count) hosts watched, and a change that concerns ten of them",
            ours: "hosts \(count) 8",
            rounds: rounds,
            figures: [
                Figure(name: "hosts.memory", unit: "B per host", aim: Figure.Aim(plus: 1024)),
                Figure(name: "tenOfMany.lookups", unit: "", aim: Figure.Aim(plus: 10)),
                Figure(name: "tenOfMany.p50", unit: "µs"),
                Figure(name: "tenOfMany.meanwhile.p50", unit: "µs"),
            ]
        )
    }

    private static func idle(_ seconds: Int) -> Series {
        Series(
            title: "100 hosts watched for \(seconds) s in which nothing happens",
            ours: "idle \(seconds)",
            rounds: 1,
            figures: [Figure(name: "idle.wakeUps", unit: ""), Figure(name: "idle.cpu", unit: "ms")]
        )
    }

    private static func start(_ starts: Int, _ command: String) -> Series {
        Series(
            title: "`netwatch host 127.0.0.1 --once`, from its start to its first line",
            ours: "start \(starts) \(command) host 127.0.0.1 --once",
            other: .peer("start \(starts) FLOORS/once 127.0.0.1"),
            rounds: 5,
            figures: [Figure(name: "start", unit: "ms")]
        )
    }
}

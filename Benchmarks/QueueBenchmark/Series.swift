internal import BenchmarkSupport
internal import OfflineQueue

extension Series {
    static func all(_ paths: QueueBenchmarkPaths, isQuick: Bool) -> [Series] {
        let size = isQuick ? Size.quick : .full
        return [
            enqueue(1, paths, size), enqueue(64, paths, size),
            enqueue(1, paths, size, pinned: 2), enqueue(64, paths, size, pinned: 2),
            drain(paths, size), backlog(paths, size),
            lanes(10_000, comparedWith: 10, paths, size), lanes(200, comparedWith: 1, paths, size),
            laneMemory(paths, size),
            sending(.encrypted, paths, size), sending(.credential, paths, size),
        ]
    }

    /// How much is measured: everything, or about a tenth as a smoke test.
    fileprivate struct Size {
        let rounds: Int
        /// The maximum number of requests of a measurement.
        let count: Int
        /// The maximum duration of a measurement in seconds.
        let seconds: Double
        /// The number of waiting requests in the series `backlog`.
        let backlog: Int

        static let full = Size(rounds: 7, count: 40_000, seconds: 2, backlog: 1_000_000)
        static let quick = Size(rounds: 3, count: 10_000, seconds: 0.5, backlog: 50_000)
    }

    /// The series `enqueue`, or `pinned` if every sync takes the same time.
    ///
    /// - Parameters:
    ///   - producers: The number of tasks that enqueue requests.
    ///   - pinned: The duration of every sync in milliseconds. If it is `nil`, a sync takes as long as the disk needs.
    private static func enqueue(
        _ producers: Int,
        _ paths: QueueBenchmarkPaths,
        _ size: Size,
        pinned: Int? = nil
    ) -> Series {
        let bounds = "\(size.count) \(size.seconds)"
        let peers = ["persist-queue", "huey", "litequeue", "redis"].map { name in
            Other.program(name, "\(paths.peers) \(name) \(producers) \(bounds)")
        }
        let replay = "replay \(paths.recording("enqueue")) \(size.seconds) \(producers)"
        let time = pinned.map { "a sync takes \($0) ms" } ?? "a sync takes as long as the disk needs"
        return Series(
            pinned == nil ? "enqueue" : "pinned",
            title:
                "requests accepted durably, \(producers == 1 ? "one producer" : "\(producers) producers"), "
                + "1 KiB, \(time); the floor has \(producers) per commit",
            ours: "enqueue \(producers) \(bounds)",
            others: [.floor(replay)] + peers,
            rounds: size.rounds,
            figures: [
                Figure("rate", "/s", aims: aims(producers, isPinned: pinned != nil)),
                Figure("cpu", "µs each"), Figure("syncs", "each"), Figure("p50", "µs"), Figure("p99", "µs"),
            ],
            preparations: [
                paths.filling("empty", "0 1"),
                paths.recording("enqueue", of: "enqueue 1 \(size.count) 1000", on: "empty"),
            ],
            environment: ["TEMPLATE=\(paths.template("empty"))"]
                + (pinned.map { ["FLOORS_SYNC_NANOSECONDS=\($0 * 1_000_000)"] } ?? [])
        )
    }

    private static func aims(_ producers: Int, isPinned: Bool) -> [Figure.Aim] {
        guard producers == 1 else { return [.atLeast(0.6), .atLeast(20, of: "persist-queue")] }
        return isPinned ? [.atLeast(0.8)] : []
    }

    private static func drain(_ paths: QueueBenchmarkPaths, _ size: Size) -> Series {
        Series(
            title: "changes of state while draining: claimed and delivered, 64 requests per commit",
            ours: "drain 64 \(size.seconds)",
            others: [.floor("replay \(paths.recording("drain")) \(size.seconds) 1")],
            rounds: size.rounds,
            figures: [
                Figure("rate", "/s", aims: [.atLeast(0.6)]), Figure("cpu", "µs each"),
                Figure("syncs", "each"),
            ],
            preparations: [
                paths.filling("waiting", "\(size.count) 1"),
                paths.recording("drain", of: "drain 64 1000", on: "waiting"),
            ],
            environment: ["TEMPLATE=\(paths.template("waiting"))"]
        )
    }

    private static func backlog(_ paths: QueueBenchmarkPaths, _ size: Size) -> Series {
        let claims = size.count / 20
        return Series(
            title: "\(size.backlog) waiting requests in 10 lanes, compared with 1000; syncs take no time",
            ours: "backlog \(claims) \(paths.template("many"))",
            others: [.measured("1000", by: "backlog \(claims) \(paths.template("few"))")],
            rounds: size.rounds,
            figures: [
                Figure("start", "ms", aims: [.atMost(plus: 1000)]),
                Figure("memory", "KiB", aims: [.atMost(1, plus: 65_536)]),
                Figure("claim.p50", "µs", aims: [.atMost(1.2)]),
                Figure("claim.p99", "µs", aims: [.atMost(1.2)]),
                Figure("size", "MiB"),
            ],
            preparations: [
                paths.filling("many", "\(size.backlog) 10"), paths.filling("few", "1000 10"),
            ],
            environment: ["FLOORS_SYNC_NANOSECONDS=0"]
        )
    }
}

extension Series {
    /// The series `lanes`. It has at most 10,000 requests, because the measurement counts delivered requests in the
    /// history, which keeps 10,000.
    fileprivate static func lanes(
        _ lanes: Int,
        comparedWith fewer: Int,
        _ paths: QueueBenchmarkPaths,
        _ size: Size
    ) -> Series {
        let count = min(10_000, size.count)
        return Series(
            title:
                "\(count) requests delivered in \(lanes) lanes, compared with \(fewer); syncs take no time",
            ours: "lanes \(count) \(lanes)",
            others: [.measured("\(fewer)", by: "lanes \(count) \(fewer)")],
            rounds: size.rounds,
            figures: [Figure("rate", "/s"), Figure("cpu", "µs each")],
            preparations: [paths.filling("empty", "0 1")],
            environment: ["TEMPLATE=\(paths.template("empty"))", "FLOORS_SYNC_NANOSECONDS=0"]
        )
    }

    /// The series `lane-memory`. Lanes in memory are compared with those that are only in the store.
    fileprivate static func laneMemory(_ paths: QueueBenchmarkPaths, _ size: Size) -> Series {
        let kept = Scheduler.Settings().maximumLanes
        return Series(
            title:
                "memory of the scheduler for each of \(size.backlog) lanes that are not loaded, and of \(kept) that are",
            ours: "lane-memory \(kept) \(size.backlog) \(kept)",
            others: [.measured("loaded", by: "lane-memory 0 \(kept) \(Int32.max)")],
            rounds: size.rounds,
            figures: [Figure("memory", "B", aims: [.atMost(0.1)])],
            preparations: [paths.filling("empty", "0 1")],
            environment: ["TEMPLATE=\(paths.template("empty"))"]
        )
    }

    /// The series `sending`, which needs the server of `web.sh`.
    fileprivate static func sending(
        _ variant: Sending.Variant,
        _ paths: QueueBenchmarkPaths,
        _ size: Size
    ) -> Series {
        func measurement(_ variant: Sending.Variant) -> String {
            "sending \(size.count / 20) \(variant) http://127.0.0.1"
        }
        return Series(
            title: "\(size.count / 20) requests enqueued and delivered, \(variant); syncs take no time",
            ours: measurement(variant),
            others: [.measured("plain", by: measurement(.plain))],
            rounds: size.rounds,
            figures: [Figure("rate", "/s", aims: [.atLeast(0.67)]), Figure("cpu", "µs each")],
            environment: ["FLOORS_SYNC_NANOSECONDS=0"]
        )
    }
}

// MARK: - Preparations

extension QueueBenchmarkPaths {
    /// Returns the directory of a queue that is created once. Each measurement gets a copy of it.
    func template(_ name: String) -> String { "\(scratch)/\(name)" }

    /// Returns the file with the SQL statements of a measurement, which the floor executes.
    func recording(_ name: String) -> String { "\(scratch)/\(name).recording" }

    /// Returns the command that creates the template with this name, unless it exists.
    ///
    /// - Parameter arguments: The first arguments of ``Fill``.
    func filling(_ name: String, _ arguments: String) -> String {
        command("fill \(arguments)", "STORE=\(template(name))", makes: template(name))
    }

    /// Returns the command that records the SQL statements of a measurement, unless the recording exists.
    ///
    /// - Parameters:
    ///   - measurement: The name and the arguments of the measurement.
    ///   - template: The name of the template on which the measurement runs.
    func recording(_ name: String, of measurement: String, on template: String) -> String {
        command(
            measurement,
            "TEMPLATE=\(self.template(template)) FLOORS_RECORDING=\(recording(name))",
            makes: recording(name)
        )
    }

    /// Returns the command that runs a measurement if the file that it creates does not exist.
    private func command(_ measurement: String, _ environment: String, makes path: String) -> String {
        """
        [ -e \(path) ] || env FLOORS_SYNC_NANOSECONDS=0 \(environment) \
        \(enclosure) \(CommandLine.arguments[0]) measure \(measurement) >/dev/null
        """
    }
}

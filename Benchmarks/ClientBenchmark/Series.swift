internal import BenchmarkSupport

extension Series {
    static func all(_ paths: ClientBenchmarkPaths, isQuick: Bool) -> [Series] {
        let size = isQuick ? Size.quick : .full
        return [1, 64, 512].flatMap {
            [transport($0, paths, size), session($0, paths, size), awaiting($0, paths, size)]
        }
            + [
                download("transport", paths, size), download("session", paths, size), save(paths, size),
                upload("transport", paths, size), upload("session", paths, size),
                slow("transport", paths, size), slow("session", paths, size),
            ]
    }

    /// How much is measured: everything, or about a tenth as a smoke test.
    private struct Size {
        let rounds: Int
        /// The number of rounds of the series `bodies` and `slow`, which take long.
        let longRounds: Int
        /// The duration in seconds of each measurement of the series `requests`.
        let seconds: Double
        /// The number of responses that are open at once in the series `slow`.
        let open: Int
        /// The body of the series `bodies`.
        let body: Body

        static let full = Size(rounds: 7, longRounds: 3, seconds: 2, open: 10_000, body: .large)
        static let quick = Size(rounds: 3, longRounds: 1, seconds: 0.3, open: 1_000, body: .moderate)
    }

    // MARK: Small bodies

    private static func transport(_ clients: Int, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let bounds = "\(clients) \(size.seconds) \(paths.small)"
        return Series(
            title: "the engine alone: requests with a small body, \(clients) in flight",
            ours: "requests transport \(bounds)",
            others: [.floor("transfers requests \(bounds)")],
            rounds: size.rounds,
            figures: figures(clients == 64 ? [.atLeast(0.8)] : [])
        )
    }

    private static func session(_ clients: Int, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let bounds = "\(clients) \(size.seconds) \(paths.small)"
        let aims: [Figure.Aim] =
            clients == 64 ? [.atLeast(0.6), .atLeast(7, of: "URLSession")] : []
        return Series(
            title: "a session's `responseData`: requests with a small body, \(clients) in flight",
            ours: "requests session \(bounds)",
            others: [
                .floor("transfers requests \(bounds)"),
                paths.asyncHTTPClient("requests \(bounds)"),
                .measured("URLSession", by: "requests foundation \(bounds)"),
            ] + (clients <= curlsLimit ? [paths.curl("requests \(bounds)")] : []),
            rounds: size.rounds,
            figures: figures(aims + [asyncHTTPClientAim(clients)])
        )
    }

    private static func awaiting(_ clients: Int, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let bounds = "\(clients) \(size.seconds) \(paths.small)"
        return Series(
            title: "a session's `await responseData()`: requests with a small body, \(clients) in flight",
            ours: "requests awaiting \(bounds)",
            others: [
                .measured("handlers", by: "requests session \(bounds)"),
                paths.asyncHTTPClient("requests \(bounds)"),
            ],
            rounds: size.rounds,
            figures: figures([asyncHTTPClientAim(clients)])
        )
    }

    /// The target for a session's rate, compared with async-http-client.
    private static func asyncHTTPClientAim(_ clients: Int) -> Figure.Aim {
        .atLeast(clients == 64 ? 1.25 : 1.15, of: "async-http-client")
    }

    /// The highest value that `curl --parallel-max` accepts.
    private static let curlsLimit = 300

    private static func figures(_ aims: [Figure.Aim]) -> [Figure] {
        [Figure("rate", "/s", aims: aims), Figure("cpu", "µs each")]
    }

    // MARK: Large bodies

    private static func download(_ client: String, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let of = { (body: Body) in "\(client) \(paths.url(of: body))" }
        let url = paths.url(of: size.body)
        return body(
            title: "\(client): \(size.body.mebibytes) MiB downloaded and discarded",
            ours: "download \(of(size.body))",
            others: [
                .floor("transfers download \(url)"),
                .measured("smaller body", by: "download \(of(.moderate))"),
                paths.asyncHTTPClient("download \(url)"),
                .measured("URLSession", by: "download foundation \(url)"),
                paths.curl("\(size.body.bytes) \(url)"),
            ],
            size
        )
    }

    private static func save(_ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let url = paths.url(of: size.body)
        let path = "\(paths.scratch)/saved"
        return body(
            title: "session: \(size.body.mebibytes) MiB downloaded to a file",
            ours: "save session \(url) \(path)",
            others: [
                .floor("transfers download \(url) \(path)"),
                .measured("smaller body", by: "save session \(paths.url(of: .moderate)) \(path)"),
                .measured("URLSession", by: "save foundation \(url) \(path)"),
                paths.curl("\(size.body.bytes) \(url)", output: path),
            ],
            size
        )
    }

    private static func upload(_ client: String, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let file = paths.file(of: size.body)
        return body(
            title: "\(client): a file of \(size.body.mebibytes) MiB uploaded",
            ours: "upload \(client) \(file) \(paths.server)",
            others: [
                .floor("transfers upload \(file) \(paths.server)"),
                .measured(
                    "smaller body",
                    by: "upload \(client) \(paths.file(of: .moderate)) \(paths.server)"
                ),
                paths.asyncHTTPClient("upload \(file) \(paths.server)"),
                .measured("URLSession", by: "upload foundation \(file) \(paths.server)"),
                paths.curl("\(size.body.bytes) --upload-file \(file) \(paths.server)"),
            ],
            size
        )
    }

    private static func body(title: String, ours: String, others: [Other], _ size: Size) -> Series {
        Series(
            "bodies",
            title: title,
            ours: ours,
            others: others,
            rounds: size.longRounds,
            figures: [
                Figure("throughput", "MiB/s", aims: [.atLeast(0.95)]), Figure("cpu", "ms"),
                // The peak memory must not depend on the size of the body.
                Figure("memory", "KiB", aims: [.atMost(1, of: "smaller body", plus: 4096)]),
            ]
        )
    }

    // MARK: Many at once

    private static func slow(_ client: String, _ paths: ClientBenchmarkPaths, _ size: Size) -> Series {
        let count = size.open
        return Series(
            title: "\(client): \(count) responses open at once",
            ours: "slow \(client) \(count) \(paths.server)",
            others: [
                .floor("transfers slow \(count) \(paths.server)/\(count)"),
                paths.asyncHTTPClient("slow \(count) \(paths.server)/\(count)"),
                paths.urlSession("slow foundation \(count) \(paths.server)"),
            ],
            rounds: size.longRounds,
            figures: [
                Figure("answered", "", aims: [.atLeast(1)]), Figure("seconds", "s"),
                Figure("cpu", "µs each"), Figure("memory", "KiB"),
            ]
        )
    }
}

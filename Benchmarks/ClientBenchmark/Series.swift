internal import BenchmarkSupport

extension Series {
    static func all(_ place: Place, isQuick: Bool) -> [Series] {
        let size = isQuick ? Size.quick : .full
        return [1, 64, 512].flatMap { [transport($0, place, size), session($0, place, size)] }
            + [
                download("transport", place, size), download("session", place, size), save(place, size),
                upload("transport", place, size), upload("session", place, size),
                slow("transport", place, size), slow("session", place, size),
            ]
    }

    /// The extent of the measurements.
    private struct Size {
        let rounds: Int
        /// The number of rounds for series that take long.
        let longRounds: Int
        /// The seconds of requests per round.
        let seconds: Double
        /// The number of responses that are open at once.
        let open: Int
        let body: Body

        static let full = Size(rounds: 7, longRounds: 3, seconds: 2, open: 10_000, body: .large)
        static let quick = Size(rounds: 3, longRounds: 1, seconds: 0.3, open: 1_000, body: .moderate)
    }

    // MARK: Small bodies

    private static func transport(_ clients: Int, _ place: Place, _ size: Size) -> Series {
        let bounds = "\(clients) \(size.seconds) \(place.small)"
        return Series(
            title: "the engine alone: requests with a small body, \(clients) in flight",
            ours: "requests transport \(bounds)",
            others: [.floor("transfers requests \(bounds)")],
            rounds: size.rounds,
            figures: figures(clients == 64 ? [.atLeast(0.8)] : [])
        )
    }

    private static func session(_ clients: Int, _ place: Place, _ size: Size) -> Series {
        let bounds = "\(clients) \(size.seconds) \(place.small)"
        let aims: [Figure.Aim] = [
            .atLeast(0.6), .atLeast(1.3, of: "async-http-client"), .atLeast(6, of: "URLSession"),
        ]
        return Series(
            title: "a session's `responseData`: requests with a small body, \(clients) in flight",
            ours: "requests session \(bounds)",
            others: [
                .floor("transfers requests \(bounds)"),
                place.asyncHTTPClient("requests \(bounds)"),
                .measured("URLSession", by: "requests foundation \(bounds)"),
            ] + (clients <= curlsLimit ? [place.curl("requests \(bounds)")] : []),
            rounds: size.rounds,
            figures: figures(clients == 64 ? aims : [])
        )
    }

    /// The maximum of `curl --parallel-max`.
    private static let curlsLimit = 300

    private static func figures(_ aims: [Figure.Aim]) -> [Figure] {
        [Figure("rate", "/s", aims: aims), Figure("cpu", "µs each")]
    }

    // MARK: Large bodies

    private static func download(_ client: String, _ place: Place, _ size: Size) -> Series {
        let of = { (body: Body) in "\(client) \(place.url(of: body))" }
        let url = place.url(of: size.body)
        return body(
            title: "\(client): \(size.body.mebibytes) MiB downloaded and thrown away",
            ours: "download \(of(size.body))",
            others: [
                .floor("transfers download \(url)"),
                .measured("smaller body", by: "download \(of(.moderate))"),
                place.asyncHTTPClient("download \(url)"),
                .measured("URLSession", by: "download foundation \(url)"),
                place.curl("\(size.body.bytes) \(url)"),
            ],
            size
        )
    }

    private static func save(_ place: Place, _ size: Size) -> Series {
        let url = place.url(of: size.body)
        let path = "\(place.scratch)/saved"
        return body(
            title: "session: \(size.body.mebibytes) MiB downloaded to a file",
            ours: "save session \(url) \(path)",
            others: [
                .floor("transfers download \(url) \(path)"),
                .measured("smaller body", by: "save session \(place.url(of: .moderate)) \(path)"),
                .measured("URLSession", by: "save foundation \(url) \(path)"),
                place.curl("\(size.body.bytes) \(url)", output: path),
            ],
            size
        )
    }

    private static func upload(_ client: String, _ place: Place, _ size: Size) -> Series {
        let file = place.file(of: size.body)
        return body(
            title: "\(client): a file of \(size.body.mebibytes) MiB uploaded",
            ours: "upload \(client) \(file) \(place.server)",
            others: [
                .floor("transfers upload \(file) \(place.server)"),
                .measured(
                    "smaller body",
                    by: "upload \(client) \(place.file(of: .moderate)) \(place.server)"
                ),
                place.asyncHTTPClient("upload \(file) \(place.server)"),
                .measured("URLSession", by: "upload foundation \(file) \(place.server)"),
                place.curl("\(size.body.bytes) --upload-file \(file) \(place.server)"),
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
                // The size of the body must not matter.
                Figure("memory", "KiB", aims: [.atMost(1, of: "smaller body", plus: 4096)]),
            ]
        )
    }

    // MARK: Many at once

    private static func slow(_ client: String, _ place: Place, _ size: Size) -> Series {
        let count = size.open
        return Series(
            title: "\(client): \(count) responses open at once",
            ours: "slow \(client) \(count) \(place.server)",
            others: [
                .floor("transfers slow \(count) \(place.server)/\(count)"),
                place.asyncHTTPClient("slow \(count) \(place.server)/\(count)"),
                place.urlSession("slow foundation \(count) \(place.server)"),
            ],
            rounds: size.longRounds,
            figures: [
                Figure("answered", "", aims: [.atLeast(1)]), Figure("seconds", "s"),
                Figure("cpu", "µs each"), Figure("memory", "KiB"),
            ]
        )
    }
}

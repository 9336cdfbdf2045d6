internal import BenchmarkSupport
internal import NetwatchEventLoop
internal import NetwatchTransport

/// Measures the time to the first byte from a server with several addresses, some of which do not respond.
///
/// Arguments: the port; the addresses in the order in which a resolver would return them.
enum Addresses: Measurement {
    static let name = "addresses"

    static func run(_ arguments: [String]) async throws {
        let addresses = arguments.dropFirst().compactMap { IPAddress($0) }
        let engine = try TransferEngine(resolver: NameResolver { _ in .success(addresses) })
        let (events, continuation) = AsyncStream<TransferEvent>.makeStream()
        let start = now()
        engine.start(TransferRequest(url: "http://netwatch.invalid:\(arguments[0])/")) {
            continuation.yield($0)
        }
        for await event in events {
            guard case .end(let end) = event else { continue }
            if let failure = end.failure { throw failure }
            let answered = Double(now() - start) / 1e9
            printFigure("seconds", min(answered, end.metrics.firstByte.map(seconds) ?? answered))
            return
        }
    }

    private static func seconds(_ duration: Duration) -> Double {
        Double(duration.components.seconds) + Double(duration.components.attoseconds) / 1e18
    }
}

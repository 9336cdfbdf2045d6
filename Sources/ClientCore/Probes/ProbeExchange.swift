internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTransport
internal import NetworkReachability

/// A request of a probe and its response.
struct ProbeExchange: Sendable {
    /// The accepted time limits of an exchange, from the name lookup to the last byte.
    static let acceptedTimeouts: ClosedRange<Duration> = .milliseconds(10)...Duration.seconds(60)
    /// The maximum length of a server's text in a message, in bytes.
    static let longestText = 200

    private(set) var head: TransferHead?
    private(set) var body: [UInt8] = []
    /// The time from the start to the arrival of the response's head; `nil` if none has arrived.
    private(set) var latency: Duration?
    /// The durations of the steps, once the exchange has ended.
    private var phases: ProbePhases?
    /// Why the response is incomplete; `nil` if it is complete.
    private(set) var failure: TransferFailure?

    /// Runs the request. Cancelling the task ends the request with the failure code 42, `CURLE_ABORTED_BY_CALLBACK`.
    static func run(_ request: TransferRequest, on engine: TransferEngine) async -> ProbeExchange {
        let collector = ProbeCollector()
        let id = engine.start(request) { collector.take($0) }
        return await withTaskCancellationHandler {
            await collector.exchange()
        } onCancel: {
            engine.cancel(id)
        }
    }

    fileprivate mutating func take(_ event: TransferEvent, elapsed: Duration) -> Bool {
        switch event {
        case .head(let head):
            self.head = head
            latency = elapsed
        case .body(let piece):
            body += piece.bytes
        case .connected, .progress:
            break
        case .end(let end):
            failure = end.failure
            phases = ProbePhases(end.metrics)
            return true
        }
        return false
    }

    /// Returns the first value of a header field of the response; `nil` if the field is missing.
    func header(_ name: String) -> String? {
        head?.fields.values(of: name).first
    }

    /// Returns the probe result for this exchange, with the given validation and the measured latency.
    func result(_ validation: PathValidation, portal: CaptivePortal? = nil) -> ProbeResult {
        var result = ProbeResult(validation, latency: latency, portal: portal)
        result.phases = phases
        return result
    }

    /// Returns the failure for an unexpected status. Its message includes the `Location` field of a redirect.
    ///
    /// - Parameter method: The method of the request. The message names any method other than `GET`, because some
    ///   servers do not implement it. Default: `GET`.
    func unexpectedStatus(_ status: Int, after method: HTTPProbe.Method = .get) -> PathValidation {
        let cause = method == .get ? "" : " after `\(method.rawValue)`"
        // The secrets are removed first, because the text is truncated.
        let target = header("Location").map { RedactedURL.text(of: $0).printable(upTo: Self.longestText) }
        let location = target.map { ", location `\($0)`" } ?? ""
        return .failed("unexpected status \(status)\(cause)\(location)")
    }
}

/// Collects the events of a transfer for the task that awaits its end.
private final class ProbeCollector: Sendable {
    private struct State {
        var exchange = ProbeExchange()
        var hasEnded = false
        var waiter: CheckedContinuation<ProbeExchange, Never>?
    }

    private let started = BootInstant.now
    private let state = Lock(State())

    func take(_ event: TransferEvent) {
        let elapsed = started.duration(to: .now)
        let (waiter, exchange) = state.withLock { state in
            state.hasEnded = state.exchange.take(event, elapsed: elapsed)
            return (state.hasEnded ? state.waiter : nil, state.exchange)
        }
        waiter?.resume(returning: exchange)
    }

    func exchange() async -> ProbeExchange {
        await withCheckedContinuation { waiter in
            let ended = state.withLock { state in
                if !state.hasEnded { state.waiter = waiter }
                return state.hasEnded ? state.exchange : nil
            }
            if let ended { waiter.resume(returning: ended) }
        }
    }
}

extension ProbePhases {
    fileprivate init(_ metrics: TransferMetrics) {
        self.init()
        let begun = metrics.begun ?? .zero
        lookup = metrics.lookupEnded.map { $0 - begun }
        connect = metrics.connected.map { $0 - (metrics.lookupEnded ?? begun) }
        if let connected = metrics.connected { tls = metrics.tlsEnded.map { $0 - connected } }
        if let ready = metrics.requestReady { firstByte = metrics.firstByte.map { $0 - ready } }
    }
}

extension TransferRequest {
    /// Creates the request of a probe. It uses a separate connection.
    ///
    /// If the URL names the watched host, the destinations of all paths are tried until a connection succeeds.
    /// Another host name is resolved, and the connection uses the first path.
    init(probing url: URL, for host: NetworkHost?, over paths: [NetworkPath], timeout: Duration) {
        self.init(url: url.absoluteString)
        // A cache must not answer a probe (RFC 9111 §5.2.1.4).
        headers = [Header("Cache-Control", "no-cache"), Header("User-Agent", Self.defaultUserAgent)]
        binding = paths.first?.requiredBinding
        if let host, url.names(host) { candidates = paths.map(\.candidate) }
        connectTimeout = timeout
        totalTimeout = timeout
        idleTimeout = nil
    }
}

extension URL {
    /// Returns whether the URL contains this host.
    func names(_ host: NetworkHost) -> Bool { self.host.flatMap(NetworkHost.init) == host }
}

extension TransferFailure {
    /// Returns a message that says why a probe received no complete response.
    ///
    /// - Parameter timeout: The time limit that applied.
    func message(timeout: Duration) -> String {
        // libcurl's codes: 7 could not connect, 28 timed out, 42 cancelled by the client.
        switch code {
        case 28 where phase == .resolve: "the name was not resolved within \(timeout)"
        case 28 where phase == .response: "no complete response within \(timeout)"
        case 28: "no connection within \(timeout)"
        case 42: "cancelled"
        // The kernel's error suffices if one address was tried: the message would only add the address.
        case 7 where osErrno != 0 && connectionAttempts.count < 2: errnoDescription(osErrno).lowercased()
        default: message.printable(upTo: ProbeExchange.longestText)
        }
    }
}

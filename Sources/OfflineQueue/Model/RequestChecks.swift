internal import Foundation
internal import NetwatchTransport

/// What is refused of a request and its options before anything is written.
enum RequestChecks {
    /// They say where the body ends, which two must not say differently.
    private static let framingHeaders: Set<String> = ["content-length", "transfer-encoding"]

    private static let secretHeaders: Set<String> = ["authorization", "cookie", "proxy-authorization"]

    /// - Parameter isImported: Whether an older version may have taken them, which refused CR, LF and NUL only. Such a
    ///   request is refused at its first attempt, and must not keep an export from being imported.
    static func check(_ headers: [QueueRequest.Header], isImported: Bool = false) throws(QueueError) {
        let limit = QueueRequest.maximumHeadBytes
        let bytes = headers.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        guard bytes <= limit else {
            throw QueueError(.invalidHeader, "the headers have \(bytes) bytes, and at most \(limit) are kept")
        }
        for header in headers { try check(header, isImported: isImported) }
    }

    private static func check(_ header: QueueRequest.Header, isImported: Bool) throws(QueueError) {
        try checkName(header.name)
        guard !secretHeaders.contains(header.name.lowercased()) else {
            throw QueueError(.secretHeader, "\(header.name) is refused: secrets are not stored")
        }
        guard !framingHeaders.contains(header.name.lowercased()) else {
            throw QueueError(.invalidHeader, "\(header.name) is set by the client, not by the caller")
        }
        let isFit = isImported ? HeaderText.isKept(header.value) : HTTPFieldValue.isValid(header.value)
        guard isFit else {
            throw QueueError(.invalidHeader, HTTPFieldValue.refusal(header.name, header.value))
        }
    }

    private static func checkName(_ name: String) throws(QueueError) {
        guard HTTPToken.isValid(name) else {
            throw QueueError(
                .invalidHeader,
                "the header name \(quoted(name)) is not a token of RFC 9110, like X-Note"
            )
        }
    }

    static func check(method: String, body: QueueRequest.Body) throws(QueueError) {
        guard HTTPToken.isValid(method) else {
            throw QueueError(
                .invalidMethod,
                "the method \(quoted(method)) is not a token of RFC 9110, like POST"
            )
        }
        guard method != "CONNECT" else {
            throw QueueError(.invalidMethod, "CONNECT is not a request to a server")
        }
        guard method != "HEAD" || body == .data(Data()) else {
            throw QueueError(.invalidMethod, "a HEAD request has no body")
        }
    }
}

// MARK: - Options

extension RequestChecks {
    /// Longer is meant as for ever, and nothing that is to be delivered in a century is.
    static let longestTime: Duration = .seconds(366 * 86_400)
    private static let mostDependencies = 64

    static func check(_ options: EnqueueOptions, now: Date) throws(QueueError) {
        if let id = options.id { try checkPrintable(id, "id") }
        if let key = options.replaceKey { try checkPrintable(key, "replace key") }
        if let lane = options.lane, lane.isEmpty || lane.utf8.count > 255 {
            throw QueueError(.invalidOption, "the lane's label is not 1 to 255 bytes long")
        }
        try checkOrder(options)
        try checkTimes(options, now: now)
        try checkDependencies(options)
        try options.expectation.check()
        if let most = options.maximumAttempts, most < 1 {
            throw QueueError(.invalidOption, "\(most) attempts are not at least 1")
        }
    }

    private static func checkOrder(_ options: EnqueueOptions) throws(QueueError) {
        guard (0...9).contains(options.priority) else {
            throw QueueError(.invalidOption, "the priority \(options.priority) is not 0 (first) to 9 (last)")
        }
        guard !options.isFIFO || options.priority == EnqueueOptions.defaultPriority else {
            throw QueueError(.invalidOption, "a lane in order knows no priorities")
        }
    }

    private static func checkTimes(_ options: EnqueueOptions, now: Date) throws(QueueError) {
        guard options.timeToLive >= .milliseconds(1), options.timeToLive <= longestTime else {
            throw QueueError(
                .invalidOption,
                "a time to live of \(options.timeToLive.words) is not 1 ms to 366 days"
            )
        }
        let latest = now.addingTimeInterval(366 * 86_400)
        if let deadline = options.deadline, !(deadline > now && deadline <= latest) {
            throw QueueError(
                .invalidOption,
                "the deadline \(printable(deadline)) is not within the next 366 days"
            )
        }
        guard let start = options.notBefore else { return }
        guard start <= latest else {
            throw QueueError(.invalidOption, "the time \(printable(start)) is not within the next 366 days")
        }
        guard start < options.end(from: now) else {
            throw QueueError(
                .invalidOption,
                "it would be given up before the time \(printable(start)) at which it may be sent"
            )
        }
    }

    /// Foundation cannot print every date there can be.
    private static func printable(_ date: Date) -> Date { Timestamp(date).date }

    private static func checkDependencies(_ options: EnqueueOptions) throws(QueueError) {
        guard options.dependencies.count <= mostDependencies else {
            throw QueueError(
                .invalidOption,
                "it depends on \(options.dependencies.count) requests, and at most \(mostDependencies) are kept"
            )
        }
        for id in options.dependencies {
            try checkPrintable(id, "id of a request it depends on")
            guard id != options.id else {
                throw QueueError(.cyclicDependency, "the request \(quoted(id)) depends on itself")
            }
        }
    }

    static func checkPrintable(_ text: String, _ name: String) throws(QueueError) {
        guard isPrintable(text) else {
            throw QueueError(
                .invalidOption,
                "the \(name) \(quoted(text)) is not 1 to 255 bytes of printable ASCII"
            )
        }
    }

    static func check(_ key: IdempotencyKey) throws(QueueError) {
        try checkName(key.headerName)
        guard !secretHeaders.contains(key.headerName.lowercased()),
            !framingHeaders.contains(key.headerName.lowercased())
        else {
            throw QueueError(.invalidHeader, "\(key.headerName) cannot carry an idempotency key")
        }
        guard case .value(let value) = key.source else { return }
        try checkPrintable(value, "idempotency key")
        guard !key.isQuoted || !value.contains(where: { $0 == "\"" || $0 == "\\" }) else {
            throw QueueError(.invalidOption, "the idempotency key \(quoted(value)) holds `\"` or `\\`")
        }
    }

    private static func isPrintable(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
}

extension EnqueueOptions {
    /// When it is given up.
    func end(from now: Date) -> Date {
        let (seconds, attoseconds) = timeToLive.components
        let end = now.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
        return min(end, deadline ?? end)
    }
}

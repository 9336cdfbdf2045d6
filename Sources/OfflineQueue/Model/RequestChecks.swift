package import ClientCore
internal import Foundation
internal import NetwatchTransport
internal import NetworkReachability

/// The validation of a request and its options, before anything is written.
package enum RequestChecks {
    /// The purpose of a request, on which some rules depend.
    package enum Purpose: Sendable {
        /// The request is enqueued. It must not contain secrets, because it is stored.
        case store
        /// The request is imported. Fewer rules apply, because an older version with fewer rules may have accepted it,
        /// and one request must not prevent the import of the whole export. A request that the client cannot send fails
        /// at its first attempt.
        case `import`
        /// The request is sent without being stored. It may contain secrets.
        case send
    }

    /// Validates a request and returns its origin.
    ///
    /// - Parameter allowsSignature: The value of ``EnqueueOptions/allowsSignature``; `nil` for a request without this
    ///   option, such as a webhook.
    /// - Throws: ``QueueError`` with a message that quotes the invalid value.
    @discardableResult
    package static func check(
        _ request: QueueRequest,
        for purpose: Purpose = .store,
        allowsSignature: Bool? = nil
    ) throws(QueueError) -> Origin {
        try checkMethod(of: request, for: purpose)
        let origin = try origin(of: request.url, for: purpose)
        if purpose == .store { try checkSecrets(in: request.url, allowsSignature: allowsSignature) }
        try checkHeaders(request.headers, for: purpose)
        return origin
    }

    private static func origin(of url: String, for purpose: Purpose) throws(QueueError) -> Origin {
        let limit = purpose == .import ? QueueRequest.maximumHeadBytes : QueueRequest.maximumURLBytes
        guard url.utf8.count <= limit else {
            throw QueueError(
                .invalidURL,
                "the URL has \(url.utf8.count) bytes; at most \(limit) are accepted"
            )
        }
        let origin = try Origin(url: url, allowsUserInfo: purpose == .send)
        guard purpose == .import || HostText.isValid(origin.host) else {
            let advice = InternationalName.advice(for: origin.host).map { "; \($0)" } ?? ""
            throw QueueError(
                .invalidURL,
                "the host \(quoted(origin.host)) is not a name or an address\(advice)"
            )
        }
        guard purpose == .import || !HostText.isMistypedAddress(origin.host) else {
            throw QueueError(
                .invalidURL,
                "the host \(quoted(origin.host)) looks like an IP address but is not a valid one"
            )
        }
        return origin
    }

    private static func checkSecrets(in url: String, allowsSignature: Bool?) throws(QueueError) {
        let signatures = SecretQueryItems.signatures
        if let name = SecretQueryItems.firstName(in: url, except: signatures) {
            throw QueueError(.invalidURL, "the query item \(quoted(name)) is refused: \(SecretRemoval.hint)")
        }
        guard allowsSignature != true, let name = SecretQueryItems.firstName(in: url) else { return }
        let hint =
            allowsSignature == nil
            ? "" : "; `allowsSignature` (`--allow-signature`) accepts a signed URL and stores it unchanged"
        throw QueueError(
            .invalidURL,
            "the query item \(quoted(name)) is refused: \(SecretRemoval.hint)\(hint)"
        )
    }

    private static func checkMethod(of request: QueueRequest, for purpose: Purpose) throws(QueueError) {
        let method = request.method
        let isSendable = HTTPRequestRules.fault(ofMethod: method) == nil
        // Development versions accepted `connect`.
        guard isSendable || purpose == .import && HTTPToken.isValid(method) && method != "CONNECT" else {
            throw QueueError(.invalidMethod, HTTPRequestRules.refusal(ofMethod: method))
        }
        guard purpose == .import || method != "TRACE" else {
            throw QueueError(.invalidMethod, "the method TRACE is refused: it is for debugging")
        }
        guard request.body != .data(Data()) else { return }
        if let fault = HTTPRequestRules.fault(ofBodyWithMethod: method) {
            throw QueueError(.invalidMethod, fault)
        }
        // The client refuses such a request, as URLSession does.
        guard purpose == .import || method != "GET" else {
            throw QueueError(.invalidMethod, "a GET request must not have a body")
        }
    }

    /// Refuses a known method in the wrong case, for example `get`, because a server would not recognize it. Used for
    /// methods that a user typed; a program can enqueue any method.
    package static func checkSpelling(ofMethod method: String) throws(QueueError) {
        guard let meant = HTTPMethod.misspelt(as: method) else { return }
        throw QueueError(
            .invalidMethod,
            "the method is \(quoted(method)); methods are case-sensitive, use `\(meant.rawValue)`"
        )
    }
}

// MARK: - Options

extension RequestChecks {
    /// The maximum of each duration that a caller can set, and how far in the future a time may be: 366 days, a leap
    /// year, so that no request waits for ever.
    package static let longestTime: Duration = .seconds(366 * 86_400)
    private static let maximumDependencies = 64

    static func check(
        _ options: EnqueueOptions,
        for purpose: Purpose = .store,
        now: Date
    ) throws(QueueError) {
        if let id = options.id { try checkPrintable(id, "id") }
        if let tag = options.tag { try checkPrintable(tag, "tag") }
        if let webhook = options.onDone { try check(webhook, for: purpose) }
        if let key = options.replaceKey { try checkPrintable(key, "replace key") }
        if let lane = options.lane { try check(lane: lane, of: options.submitter, for: purpose) }
        if let name = options.credential { try CredentialName.check(name) }
        guard options.credential == nil || !options.allowsSignature else {
            throw QueueError(
                .invalidOption,
                "a signed URL cannot be combined with a credential: the signature is the credential"
            )
        }
        try checkOrder(options)
        try checkTimes(options, now: now)
        // An imported request keeps its own times, which are not part of the options.
        if purpose == .store { try checkWindow(options, now: now) }
        try checkDependencies(options)
        try options.expectation.check()
        try options.checkAttempts()
        if let id = options.webhookOf { try checkPrintable(id, "id of the request of a webhook") }
        if purpose == .store, let fault = options.constraints.fault {
            throw QueueError(.invalidOption, fault)
        }
    }

    /// Refuses HTTP/2 for a plain http URL, whose requests always use HTTP/1.1. Used for versions that a user has set for
    /// one request; a program may set a version for all requests of a session.
    package static func check(_ version: HTTPVersion?, of url: String) throws(QueueError) {
        guard version == .http2, (try? Origin(url: url, allowsUserInfo: true))?.scheme == "http" else {
            return
        }
        throw QueueError(
            .invalidOption,
            "the HTTP version is `2`, but the URL begins with `http://`; it must be `1.1`, or the URL https"
        )
    }

    package static func check(_ webhook: Webhook, for purpose: Purpose = .store) throws(QueueError) {
        do throws(QueueError) {
            try check(webhook.request(reporting: Data()), for: purpose)
            if let name = webhook.credential { try CredentialName.check(name) }
        } catch {
            throw QueueError(error.code, "the webhook is refused: \(error.message)")
        }
    }

    private static func check(
        lane: String,
        of submitter: Submitter?,
        for purpose: Purpose
    ) throws(QueueError) {
        guard (1...255).contains(lane.utf8.count) else {
            throw QueueError(
                .invalidOption,
                "the label of the lane has \(lane.utf8.count) bytes; 1 to 255 are accepted"
            )
        }
        let isReserved = lane.utf8.starts(with: LaneKey.reservedPrefix.utf8)
        guard isReserved, submitter != nil, purpose != .import else { return }
        throw QueueError(
            .invalidOption,
            "the label of the lane is \(quoted(lane)); it must not begin with `\(LaneKey.reservedPrefix)`, which is "
                + "reserved for the service"
        )
    }

    private static func checkOrder(_ options: EnqueueOptions) throws(QueueError) {
        guard (0...9).contains(options.priority) else {
            throw QueueError(.invalidOption, "the priority is \(options.priority); it must be 0 to 9")
        }
        guard !options.isFIFO || options.priority == EnqueueOptions.defaultPriority else {
            throw QueueError(.invalidOption, "`priority` cannot be combined with `fifo`")
        }
    }

    private static func checkTimes(_ options: EnqueueOptions, now: Date) throws(QueueError) {
        guard options.timeToLive >= .milliseconds(1), options.timeToLive <= longestTime else {
            throw QueueError(
                .invalidOption,
                "the time to live is \(options.timeToLive.words); it must be 1 ms to \(longestTime.words)"
            )
        }
        let latest = now.addingTimeInterval(longestTime / .seconds(1))
        if let deadline = options.deadline, !(deadline > now && deadline <= latest) {
            throw QueueError(
                .invalidOption,
                "the deadline \(printable(deadline)) is not within the next \(longestTime.words)"
            )
        }
        guard let start = options.notBefore else { return }
        guard start <= latest else {
            throw QueueError(
                .invalidOption,
                "the start time \(printable(start)) is more than \(longestTime.words) ahead"
            )
        }
        guard start < options.end(from: now) else {
            throw QueueError(
                .invalidOption,
                "the request would expire before it may be sent at \(printable(start)): "
                    + options.limitWords(from: now)
            )
        }
    }

    /// Refuses a request that would expire before its window opens.
    private static func checkWindow(_ options: EnqueueOptions, now: Date) throws(QueueError) {
        guard let window = options.constraints.window else { return }
        let opening = window.nextOpening(from: max(now, options.notBefore ?? now))
        guard opening < options.end(from: now) else {
            throw QueueError(
                .invalidOption,
                "the request would expire before the window `\(window)` opens at \(printable(opening)): "
                    + options.limitWords(from: now)
            )
        }
    }

    /// Returns the nearest date that Foundation can print. It cannot print dates that are too far away.
    fileprivate static func printable(_ date: Date) -> Date { Timestamp(date).date }

    private static func checkDependencies(_ options: EnqueueOptions) throws(QueueError) {
        guard options.dependencies.count <= maximumDependencies else {
            throw QueueError(
                .invalidOption,
                "the request has \(options.dependencies.count) dependencies; the maximum is \(maximumDependencies)"
            )
        }
        for id in options.dependencies {
            try checkPrintable(id, "id of a dependency")
            guard id != options.id else {
                throw QueueError(.cyclicDependency, "the request \(quoted(id)) depends on itself")
            }
        }
    }

    static func checkPrintable(_ text: String, _ name: String) throws(QueueError) {
        guard !text.isEmpty else { throw QueueError(.invalidOption, "the \(name) must not be empty") }
        guard isPrintable(text) else {
            throw QueueError(
                .invalidOption,
                "the \(name) \(quoted(text)) is not 1 to 255 bytes of printable ASCII"
            )
        }
    }

    static func check(_ key: IdempotencyKey, for purpose: Purpose = .store) throws(QueueError) {
        try checkHeaderName(key.headerName, for: purpose)
        guard key.headerName.utf8.count <= 255 else {
            throw QueueError(.invalidHeader, "the idempotency key's header name is longer than 255 bytes")
        }
        guard case .value(let value) = key.source else { return }
        try checkPrintable(value, "idempotency key")
        guard !key.isQuoted || !value.contains(where: { $0 == "\"" || $0 == "\\" }) else {
            throw QueueError(.invalidOption, "the idempotency key \(quoted(value)) contains `\"` or `\\`")
        }
    }

    /// Returns whether a text is 1 to 255 bytes of printable ASCII, as ids, tags and keys must be.
    package static func isPrintable(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count) && text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
    }
}

extension EnqueueOptions {
    /// Returns the time at which a request that is enqueued at `now` is given up: at the end of ``timeToLive`` or at
    /// ``deadline``, whichever is earlier.
    func end(from now: Date) -> Date {
        let (seconds, attoseconds) = timeToLive.components
        let end = now.addingTimeInterval(Double(seconds) + Double(attoseconds) / 1e18)
        return min(end, deadline ?? end)
    }

    /// The option that determines ``end(from:)``, in words.
    fileprivate func limitWords(from now: Date) -> String {
        guard let deadline, deadline == end(from: now) else {
            return "the time to live is \(timeToLive.words)"
        }
        return "the deadline is \(RequestChecks.printable(deadline))"
    }
}

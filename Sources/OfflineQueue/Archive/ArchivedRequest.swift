internal import Foundation

/// A line of an export with everything that is needed to send a request elsewhere.
///
/// Times are milliseconds since 1970, by the wall clock of the machine that wrote the export.
package struct ArchivedRequest: Codable, Hashable, Sendable {
    package struct Key: Codable, Hashable, Sendable {
        package var header: String
        package var value: String
        package var quoted: Bool
    }

    /// The size and hash of the body in the following lines.
    package struct Body: Codable, Hashable, Sendable {
        package var bytes: Int64
        package var sha256: String
    }

    /// The state of the request. A request that was being sent is `pending`, or `held` when it must not be sent twice.
    package enum State: String, Codable, Hashable, Sendable {
        case pending
        case blocked
        case held
        case dead
    }

    package var id: String
    package var method: String
    package var url: String
    /// Pairs of a name and a value.
    package var headers: [[String]]
    /// The lane's label; empty for the default lane of the origin.
    package var lane: String
    package var fifo: Bool
    package var priority: Int
    package var created: Int64
    /// The original lifetime in milliseconds. A retry restarts it.
    package var life: Int64
    package var expires: Int64
    /// The time that the caller scheduled the request for.
    package var scheduled: Int64?
    package var maximumAttempts: Int?
    package var key: Key?
    package var atMostOnce: Bool
    package var replaceKey: String?
    /// The ids of the requests that it depends on.
    package var after: [String]
    package var expect: String?
    /// The timeouts in the format of the store; `nil` for the defaults, and in exports of versions without other
    /// timeouts.
    package var timeouts: String?
    package var state: State
    package var holdReason: String?
    package var attempts: Int
    package var deferrals: Int
    package var lastStatus: Int?
    package var lastError: String?
    /// `nil` for a request without a body.
    package var body: Body?
}

extension ArchivedRequest {
    /// Whether the request may have dependencies. A request that a user holds may have some, too.
    var mayWaitForOthers: Bool { state == .blocked || state == .held }
}

// MARK: - Checking

extension ArchivedRequest {
    /// The end of the year 9999. Later times make no sense, and sums with this one do not overflow.
    private static let latestMoment: Int64 = 253_402_300_799_999
    private static let maximumAttemptCount = 1_000_000_000
    /// No version stored a longer error.
    private static let longestError = 128 * 1024

    /// Returns the request as it would be enqueued, after all checks of an enqueued request.
    ///
    /// - Throws: ``QueueError`` that names the invalid value.
    package func validated() throws(QueueError) -> NewRequest {
        try checkNumbers()
        try checkBody()
        let headers = try pairs()
        let request = try NewRequest(
            QueueRequest(method: method, url: url, headers: headers, body: placeholder),
            options: try options(headers),
            for: .import
        )
        guard request.id == id, request.headers == HeaderText.encode(headers) else {
            throw QueueError(.invalidHeader, "the idempotency key is also among the headers")
        }
        return request
    }

    private func checkNumbers() throws(QueueError) {
        let moments = [created, life, expires, scheduled ?? 0]
        guard moments.allSatisfy({ (0...Self.latestMoment).contains($0) }) else {
            throw QueueError(.invalidOption, "a time is outside the years 1970 to 9999")
        }
        for (name, count) in [("attempts", attempts), ("deferrals", deferrals)] {
            guard (0...Self.maximumAttemptCount).contains(count) else {
                throw QueueError(
                    .invalidOption,
                    "`\(name)` is \(count); 0 to \(Self.maximumAttemptCount) are accepted"
                )
            }
        }
        guard lastError?.utf8.count ?? 0 <= Self.longestError else {
            throw QueueError(.invalidOption, "the last error is longer than \(Self.longestError) bytes")
        }
        guard (state == .held) == (holdReason.map { HoldReason(rawValue: $0) != nil } ?? false) else {
            throw QueueError(
                .invalidOption,
                "only a held request has a hold reason, and it must be known; the state is `\(state)`"
            )
        }
    }

    private func checkBody() throws(QueueError) {
        guard let body else { return }
        guard SHA256Digest(body.sha256) != nil else {
            throw QueueError(
                .invalidOption,
                "the body's SHA-256 \(quoted(body.sha256)) is not 64 hexadecimal digits"
            )
        }
        guard body.bytes > 0, body.bytes <= QueueRequest.maximumBodyBytes else {
            let limit = QueueRequest.maximumBodyBytes
            throw QueueError(.bodyTooLarge, "the body has \(body.bytes) bytes; 1 to \(limit) are accepted")
        }
    }

    /// Replaces the body during the checks, for which only its presence matters.
    private var placeholder: QueueRequest.Body {
        body == nil ? .data(Data()) : .data(Data([0]))
    }

    private func pairs() throws(QueueError) -> [QueueRequest.Header] {
        guard headers.allSatisfy({ $0.count == 2 }) else {
            throw QueueError(.invalidHeader, "a header line is not a pair of a name and a value")
        }
        return headers.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
    }

    private func options(_ headers: [QueueRequest.Header]) throws(QueueError) -> EnqueueOptions {
        var options = EnqueueOptions(lane: lane.isEmpty ? nil : lane, isFIFO: fifo, id: id)
        options.priority = priority
        options.maximumAttempts = maximumAttempts
        options.replaceKey = replaceKey
        options.dependencies = after
        options.isAtMostOnce = atMostOnce
        options.timeouts = AttemptTimeouts(stored: timeouts)
        if let expect { options.expectation = try Expectation(parsing: expect) }
        options.idempotencyKey = key.map { .value($0.value) } ?? .none
        options.idempotencyKey.isQuoted = key?.quoted ?? false
        options.idempotencyKey.headerName = key?.header ?? Self.nameBeyond(headers)
        return options
    }

    /// Returns a header name that is not among the headers: a request without a key may have a header that carries keys
    /// elsewhere.
    private static func nameBeyond(_ headers: [QueueRequest.Header]) -> String {
        let names = Set(headers.map { $0.name.lowercased() })
        var name = "x"
        while names.contains(name) { name += "x" }
        return name
    }
}

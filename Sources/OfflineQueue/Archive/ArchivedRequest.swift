internal import Foundation

/// All that is needed to send a request again somewhere else, as a line of an export holds it.
///
/// Moments are milliseconds since 1970 by the wall clock of where it was written.
package struct ArchivedRequest: Codable, Hashable, Sendable {
    package struct Key: Codable, Hashable, Sendable {
        package var header: String
        package var value: String
        package var quoted: Bool
    }

    /// What the lines behind it have to come to.
    package struct Body: Codable, Hashable, Sendable {
        package var bytes: Int64
        package var sha256: String
    }

    /// Where it is on its way. What was being sent is `pending`, or `held` when it must not be sent twice.
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
    /// Empty for the origin's common lane.
    package var lane: String
    package var fifo: Bool
    package var priority: Int
    package var created: Int64
    /// How long it was to live, in milliseconds: as long again when it is tried anew.
    package var life: Int64
    package var expires: Int64
    /// When somebody asked for it to be sent.
    package var scheduled: Int64?
    package var maximumAttempts: Int?
    package var key: Key?
    package var atMostOnce: Bool
    package var replaceKey: String?
    /// The ids of those that it waits for.
    package var after: [String]
    package var expect: String?
    /// As the store keeps them; `nil` for the defaults, and in exports of versions that had no others.
    package var timeouts: String?
    package var state: State
    package var holdReason: String?
    package var attempts: Int
    package var deferrals: Int
    package var lastStatus: Int?
    package var lastError: String?
    /// `nil` for none.
    package var body: Body?
}

extension ArchivedRequest {
    /// One that somebody holds may wait for others all the same.
    var mayWaitForOthers: Bool { state == .blocked || state == .held }
}

// MARK: - Checking

extension ArchivedRequest {
    /// The end of the year 9999. Nobody means a later one, and sums with it do not overflow.
    private static let latestMoment: Int64 = 253_402_300_799_999
    private static let mostAttempts = 1_000_000_000
    /// Longer words were not kept by any version.
    private static let longestError = 128 * 1024

    /// The request as it would be enqueued, after the checks that everything enqueued has to pass.
    ///
    /// - Throws: ``QueueError`` that names what cannot be as it is.
    package func draft() throws(QueueError) -> RequestDraft {
        try checkNumbers()
        try checkBody()
        let headers = try pairs()
        let draft = try RequestDraft(
            QueueRequest(method: method, url: url, headers: headers, body: placeholder),
            options: try options(headers),
            isImported: true
        )
        guard draft.id == id, draft.headers == HeaderText.encode(headers) else {
            throw QueueError(.invalidHeader, "the idempotency key is among the headers, too")
        }
        return draft
    }

    private func checkNumbers() throws(QueueError) {
        let moments = [created, life, expires, scheduled ?? 0]
        guard moments.allSatisfy({ (0...Self.latestMoment).contains($0) }) else {
            throw QueueError(.invalidOption, "a moment is not within the years 1970 to 9999")
        }
        guard [attempts, deferrals].allSatisfy({ (0...Self.mostAttempts).contains($0) }) else {
            throw QueueError(.invalidOption, "the attempts are not 0 to \(Self.mostAttempts)")
        }
        guard lastError?.utf8.count ?? 0 <= Self.longestError else {
            throw QueueError(.invalidOption, "the last error is longer than \(Self.longestError) bytes")
        }
        guard (state == .held) == (holdReason.map { HoldReason(rawValue: $0) != nil } ?? false) else {
            throw QueueError(.invalidOption, "the state `\(state)` and the reason to hold it do not fit")
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
            throw QueueError(.bodyTooLarge, "the body has \(body.bytes) bytes, and 1 to \(limit) can be")
        }
    }

    /// Stands for the body in the checks: only whether there is one counts.
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

    /// A request without a key may have a header that elsewhere carries keys.
    private static func nameBeyond(_ headers: [QueueRequest.Header]) -> String {
        let names = Set(headers.map { $0.name.lowercased() })
        var name = "x"
        while names.contains(name) { name += "x" }
        return name
    }
}

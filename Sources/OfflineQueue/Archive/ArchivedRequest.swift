internal import ClientCore
internal import Foundation

/// A request in an export, with everything that another queue needs to send it.
///
/// Times are in milliseconds since 1970, by the wall clock of the machine that wrote the export.
package struct ArchivedRequest: Codable, Hashable, Sendable {
    /// The idempotency key.
    package struct Key: Codable, Hashable, Sendable {
        package var header: String
        package var value: String
        package var quoted: Bool
    }

    /// The size and hash of the body, whose bytes are in the lines after the request's line.
    package struct Body: Codable, Hashable, Sendable {
        package var bytes: Int64
        package var sha256: String
    }

    /// The state of the request. A request in flight is exported as `held` if it must not be sent twice, otherwise as
    /// `pending`.
    package enum State: String, Codable, Hashable, Sendable {
        case pending
        case blocked
        case held
        case dead
    }

    package var id: String
    package var method: String
    package var url: String
    /// The header lines, each as an array of a name and a value.
    package var headers: [[String]]
    /// The lane's label; empty for the origin's common lane.
    package var lane: String
    package var fifo: Bool
    package var priority: Int
    package var created: Int64
    /// The original time to live in milliseconds. A retry by a user starts it again.
    package var life: Int64
    package var expires: Int64
    /// The time of ``EnqueueOptions/notBefore``.
    package var scheduled: Int64?
    package var key: Key?
    package var replaceKey: String?
    /// The ids of the undelivered requests that this request depends on.
    package var dependencies: [String]
    /// The name of the request's credential; `nil` for none.
    package var credential: String?
    /// The tag; `nil` for none.
    package var tag: String?
    /// The other options, as the store keeps them.
    var options: StoredOptions
    /// The id of the user who enqueued the request. `nil` if that is not known.
    package var submitter: UInt32?
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
    /// Whether the request may have dependencies: it waits for them, or was held while it waited for them.
    var mayWaitForOthers: Bool { state == .blocked || state == .held }

    /// Holds a request that cannot be sent as it is, and removes its dependencies, so that a release does not wait for
    /// them.
    mutating func holdWithoutDependencies(_ reason: HoldReason, _ error: String) {
        (state, holdReason, lastError, dependencies) = (.held, reason.rawValue, error, [])
    }
}

// MARK: - Checking

extension ArchivedRequest {
    /// The latest accepted time: the end of the year 9999. Sums with it do not overflow.
    private static let latestMoment: Int64 = 253_402_300_799_999
    private static let maximumAttemptCount = 1_000_000_000
    /// The maximum length of ``lastError`` in bytes. The queue stores no longer error.
    private static let longestError = 128 * 1024

    /// Validates the request, and returns it in the form in which requests are enqueued.
    ///
    /// - Throws: ``QueueError`` with a message that names the invalid value.
    package func validated() throws(QueueError) -> NewRequest {
        try checkNumbers()
        try checkBody()
        let headers = try pairs()
        let request = try NewRequest(
            QueueRequest(method: method, url: url, headers: headers, body: placeholder),
            options: options(headers),
            for: .import
        )
        guard request.id == id, request.headers == HeaderText.encode(headers) else {
            throw QueueError(
                .invalidHeader,
                "`headers` contains the idempotency key, which belongs in `key` only"
            )
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
        if let lastError, lastError.utf8.count > Self.longestError {
            throw QueueError(
                .invalidOption,
                "the last error has \(lastError.utf8.count) bytes; at most \(Self.longestError) are accepted"
            )
        }
        guard (state == .held) == (holdReason.map { HoldReason(rawValue: $0) != nil } ?? false) else {
            throw QueueError(
                .invalidOption,
                "a held request must have a known `holdReason`, and no other may have one; the state is `\(state)`"
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

    /// A body for the checks, which depend only on whether there is one.
    private var placeholder: QueueRequest.Body {
        body == nil ? .data(Data()) : .data(Data([0]))
    }

    private func pairs() throws(QueueError) -> [QueueRequest.Header] {
        guard headers.allSatisfy({ $0.count == 2 }) else {
            throw QueueError(.invalidHeader, "an element of `headers` is not an array of a name and a value")
        }
        return headers.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
    }

    private func options(_ headers: [QueueRequest.Header]) -> EnqueueOptions {
        // A request whose constraints cannot be evaluated is held before its first attempt.
        var options = options.options
        (options.lane, options.isFIFO, options.id) = (lane.isEmpty ? nil : lane, fifo, id)
        options.priority = priority
        options.replaceKey = replaceKey
        options.dependencies = dependencies
        options.credential = credential
        options.tag = tag
        options.idempotencyKey = key.map { .value($0.value) } ?? .none
        options.idempotencyKey.isQuoted = key?.quoted ?? false
        options.idempotencyKey.headerName = key?.header ?? Self.nameBeyond(headers)
        return options
    }

    /// Returns a header name that no header of the request has. A request without a key gets it as the key's header
    /// name.
    ///
    /// Such a request may have an ordinary header with the default name `Idempotency-Key`, which ``NewRequest`` must
    /// not take for its key.
    private static func nameBeyond(_ headers: [QueueRequest.Header]) -> String {
        let names = Set(headers.map { $0.name.lowercased() })
        var name = "x"
        while names.contains(name) { name += "x" }
        return name
    }
}

// MARK: - Decoding

extension ArchivedRequest {
    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func value<Value: Decodable>(_ key: CodingKeys) throws -> Value {
            try container.decode(Value.self, forKey: key)
        }
        func optional<Value: Decodable>(_ key: CodingKeys) throws -> Value? {
            try container.decodeIfPresent(Value.self, forKey: key)
        }
        try self.init(
            id: value(.id),
            method: value(.method),
            url: value(.url),
            headers: value(.headers),
            lane: value(.lane),
            fifo: value(.fifo),
            priority: value(.priority),
            created: value(.created),
            life: value(.life),
            expires: value(.expires),
            scheduled: optional(.scheduled),
            key: optional(.key),
            replaceKey: optional(.replaceKey),
            dependencies: DevelopmentExport.dependencies(from: decoder) ?? value(.dependencies),
            credential: optional(.credential),
            tag: optional(.tag),
            options: optional(.options) ?? StoredOptions(DevelopmentExport.options(from: decoder)),
            submitter: optional(.submitter),
            state: value(.state),
            holdReason: optional(.holdReason),
            attempts: value(.attempts),
            deferrals: value(.deferrals),
            lastStatus: optional(.lastStatus),
            lastError: optional(.lastError),
            body: optional(.body)
        )
    }
}

extension ArchivedRequest {
    /// Returns the request without secrets, such as the signature of a signed URL. An export contains none, and an import
    /// removes those of a changed export.
    ///
    /// The credential of the request replaces them. A request without one is held.
    func withoutSecrets() -> ArchivedRequest {
        // A malformed line is refused later.
        guard headers.allSatisfy({ $0.count == 2 }) else { return self }
        let fields = headers.map { QueueRequest.Header(name: $0[0], value: $0[1]) }
        let stored = QueueRequest(method: method, url: url, headers: fields)
        let clean = SecretRemoval.apply(to: stored)
        guard clean.url != stored.url || clean.headers != stored.headers else { return self }
        var request = self
        request.url = clean.url
        request.headers = clean.headers.map { [$0.name, $0.value] }
        guard credential == nil else { return request }
        if SecretQueryItems.isSigned(url) {
            request.holdWithoutSignature()
        } else {
            request.holdWithoutCredential()
        }
        return request
    }

    /// Holds a waiting request until it gets a credential. If a restart or a flush releases it without one, the server
    /// responds with 401, and the request is held again.
    private mutating func holdWithoutCredential() {
        guard state == .pending || state == .blocked else { return }
        hold(
            .auth,
            "exports contain no secrets, so those of the request were removed; "
                + "give it a credential, or enqueue it again"
        )
    }

    /// Holds a request until a user releases or drops it, unless it is dead or already held in this way. No other
    /// release is possible: the server would respond with 403 to the URL without its signature, and the request would
    /// be dead.
    private mutating func holdWithoutSignature() {
        let reason = holdReason.flatMap(HoldReason.init(rawValue:))
        guard state != .dead, reason.map(HoldReason.releasableByRestart.contains) ?? true else { return }
        hold(
            .user,
            "exports contain no signatures, so that of the URL was removed; "
                + "cancel the request, and enqueue it again with a new signature"
        )
    }

    /// Removes an option that this version does not know from a request, which neither an export nor the row of an
    /// imported request contains. An unfinished request is held until a user releases it, and then sent without the
    /// option. If it is dead or held in this way already, its error mentions the option.
    mutating func holdWithoutUnknownOption() {
        guard let reason = options.options.unreadable else { return }
        options.options.unreadable = nil
        let words = "\(reason); a release or a retry sends it without the option"
        let held = holdReason.flatMap(HoldReason.init(rawValue:))
        guard state != .dead, held.map(HoldReason.releasableByRestart.contains) ?? true else {
            return lastError = [lastError, words].compactMap(\.self).joined(separator: "; ")
        }
        hold(.user, words)
    }

    private mutating func hold(_ reason: HoldReason, _ error: String) {
        (state, holdReason, lastError) = (.held, reason.rawValue, error)
    }
}

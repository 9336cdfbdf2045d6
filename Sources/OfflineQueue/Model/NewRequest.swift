internal import ClientCore
package import Foundation

/// A validated request, ready to be stored. It has its id, its lane and its idempotency key.
package struct NewRequest: Sendable {
    package let id: String
    package private(set) var lane: LaneKey
    package let method: String
    package let url: String
    /// The header lines in the form of ``HeaderText``, without the idempotency key.
    package let headers: String
    package let key: KeyHeader?
    package internal(set) var options: EnqueueOptions
    /// The stored body. It is `.none` until the caller has validated the request and stored the body.
    package var body: StoredBody

    /// The size of the URL and the headers in bytes.
    var headBytes: Int64 { Int64(url.utf8.count + headers.utf8.count) }
    /// The size of URL, headers and body in bytes, which counts against ``QueueLimits/bytes``, with the bytes that are
    /// reserved for the webhook.
    package var size: Int64 { headBytes + body.size + (options.onDone?.reservedBytes ?? 0) }

    /// Whether the server may receive the request twice without harm: it recognizes the repetition by the key, or the method
    /// is idempotent.
    var isRepeatable: Bool { !options.isAtMostOnce && (key != nil || HTTPMethod.isIdempotent(method)) }
    /// Whether the request can make room for others. A webhook would take the place of a request that has one.
    var isDroppable: Bool { options.onDone == nil && options.webhookOf == nil }

    /// Returns the request as one of another submitter.
    func submitted(by submitter: Submitter?) -> NewRequest {
        var request = self
        (request.options.submitter, request.lane.submitter) = (submitter, submitter?.user)
        return request
    }

    /// Validates a request and its options. The content of the request's body is not read.
    ///
    /// - Throws: ``QueueError`` if the request or an option is invalid.
    package init(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions(),
        body: StoredBody = .none,
        for purpose: RequestChecks.Purpose = .store,
        now: Date = Date()
    ) throws(QueueError) {
        // An import contains only requests whose secrets were removed when they were enqueued.
        let isReplaced = options.credential != nil && purpose == .store
        let request = isReplaced ? SecretRemoval.apply(to: request) : request
        let origin = try RequestChecks.check(
            request,
            for: purpose,
            allowsSignature: options.allowsSignature
        )
        try RequestChecks.check(options, for: purpose, now: now)
        let mode: LaneKey.Mode = options.isFIFO ? .fifo : .parallel
        lane = LaneKey(
            origin: origin,
            label: options.lane ?? "",
            mode: mode,
            constraints: options.constraints,
            submitter: options.submitter?.user
        )
        let (key, others) = try Self.key(of: request, options, for: purpose)
        id = options.id ?? UUIDv7.make()
        method = request.method
        url = request.url
        headers = HeaderText.encode(others)
        self.key = key
        self.options = options
        self.body = body
    }

    /// Returns the idempotency key, and the header lines without it.
    ///
    /// A caller may give the key as a header line instead of an option.
    private static func key(
        of request: QueueRequest,
        _ options: EnqueueOptions,
        for purpose: RequestChecks.Purpose
    ) throws(QueueError) -> (KeyHeader?, [QueueRequest.Header]) {
        var key = options.idempotencyKey
        // If the caller wants no key, a header line with the key's name is an ordinary header line.
        guard key.source != .none else { return (nil, request.headers) }
        let name = key.headerName.lowercased()
        let given = request.headers.first { $0.name.lowercased() == name }
        if let given, key.source == .automatic { key.source = .value(key.unquoted(given.value)) }
        try RequestChecks.check(key, for: purpose)
        let others = request.headers.filter { $0.name.lowercased() != name }
        guard let value = key.value(method: request.method, isAtMostOnce: options.isAtMostOnce) else {
            return (nil, others)
        }
        return (KeyHeader(name: key.headerName, value: value, isQuoted: key.isQuoted), others)
    }
}

extension IdempotencyKey {
    /// Returns the key in a header value, which is quoted if ``isQuoted`` is set.
    fileprivate func unquoted(_ value: String) -> String {
        guard isQuoted, value.utf8.count >= 2, value.hasPrefix("\""), value.hasSuffix("\"") else {
            return value
        }
        return String(value.dropFirst().dropLast())
    }

    /// Returns the key's value; `nil` for no key.
    ///
    /// A request that is sent at most once gets no random key, because the server never receives it twice.
    func value(method: String, isAtMostOnce: Bool) -> String? {
        switch source {
        case .value(let value): value
        case .automatic where !HTTPMethod.isIdempotent(method) && !isAtMostOnce:
            Self.randomValue()
        case .automatic, .none: nil
        }
    }

    /// Returns a random value for a key.
    static func randomValue() -> String { UUIDv4.make() }
}

/// The idempotency key of a request, with the name of its header field.
package struct KeyHeader: Hashable, Sendable {
    package let name: String
    package let value: String
    /// Whether the value is sent in quotes.
    package let isQuoted: Bool

    package init(name: String, value: String, isQuoted: Bool) {
        self.name = name
        self.value = value
        self.isQuoted = isQuoted
    }

    package var header: QueueRequest.Header {
        QueueRequest.Header(name: name, value: isQuoted ? "\"\(value)\"" : value)
    }
}

/// The body of a request as it is stored.
package enum StoredBody: Hashable, Sendable {
    case none
    /// The body is in the database.
    case inline(Data)
    /// The body is a file in the spool.
    case spooled(SpooledBody)
    /// The row contains the name of a file that the spool cannot have created, or a body of another length.
    case unreadable
    /// The body is in the database and differs from the accepted body; the text describes the difference.
    case changed(String)
    /// The caller enqueues a known id again, and its body is no longer available for comparison. `size` is `nil` if the
    /// body's length is not known either.
    case gone(size: Int64?)

    /// The maximum size of a body that is stored in the database: 64 KiB.
    ///
    /// A larger body is a file in the spool, because SQLite reads and writes large blobs more slowly than a file system
    /// does ([SQLite's measurement](https://www.sqlite.org/intern-v-extern-blob.html)).
    package static let maximumInlineBytes = 64 * 1024

    /// The name of the body's file; `nil` if the body is not in a file.
    var fileName: String? {
        if case .spooled(let body) = self { body.name } else { nil }
    }

    package var size: Int64 {
        switch self {
        case .none, .unreadable, .changed, .gone: 0
        case .inline(let data): Int64(data.count)
        case .spooled(let body): body.size
        }
    }
}

internal import ClientCore
package import Foundation

/// A validated request with its stored body, ready to be enqueued.
package struct NewRequest: Sendable {
    /// The location of the body.
    package enum Body: Hashable, Sendable {
        case none
        case inline(Data)
        case spooled(SpooledBody)
        /// The row names a file that the spool cannot have created.
        case unreadable
        /// The body of a known id is no longer available. `nil` if not even its length is known.
        case gone(size: Int64?)

        package var size: Int64 {
            switch self {
            case .none, .unreadable, .gone: 0
            case .inline(let data): Int64(data.count)
            case .spooled(let body): body.size
            }
        }
    }

    package let id: String
    package let lane: LaneKey
    package let method: String
    package let url: String
    /// The header lines as ``HeaderText`` writes them, without the idempotency key.
    package let headers: String
    package let body: Body
    package let key: KeyHeader?
    package let options: EnqueueOptions
    /// The size that counts against the queue's limit: URL, headers and body, in bytes.
    package let size: Int64

    package init(_ draft: RequestDraft, body: Body) {
        self.id = draft.id
        self.lane = draft.lane
        self.method = draft.method
        self.url = draft.url
        self.headers = draft.headers
        self.body = body
        self.key = draft.key
        self.options = draft.options
        self.size = draft.headBytes + body.size
    }
}

/// The idempotency key of a request and its header form.
package struct KeyHeader: Hashable, Sendable {
    package let name: String
    package let value: String
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

/// A validated request with defaults filled in for unset options.
package struct RequestDraft: Sendable {
    package let id: String
    let lane: LaneKey
    let method: String
    let url: String
    let headers: String
    let key: KeyHeader?
    let options: EnqueueOptions
    package let body: QueueRequest.Body

    /// The size of the URL and the headers in bytes.
    var headBytes: Int64 { Int64(url.utf8.count + headers.utf8.count) }

    /// - Throws: ``QueueError`` if the request or an option is invalid.
    package init(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions(),
        isImported: Bool = false,
        now: Date = Date()
    ) throws(QueueError) {
        try RequestChecks.check(method: request.method, body: request.body, isImported: isImported)
        let origin = try RequestChecks.origin(of: request.url, isImported: isImported)
        try HeaderRules.check(request.headers, isImported: isImported)
        try RequestChecks.check(options, now: now)
        let mode: LaneKey.Mode = options.isFIFO ? .fifo : .parallel
        lane = LaneKey(origin: origin, label: options.lane ?? "", mode: mode)
        let (key, others) = try Self.key(of: request, options, isImported: isImported)
        id = options.id ?? UUIDv7.make()
        method = request.method
        url = request.url
        headers = HeaderText.encode(others)
        self.key = key
        self.options = options
        body = request.body
    }

    /// Returns the idempotency key and the other header lines. The caller may also give the key as a header.
    private static func key(
        of request: QueueRequest,
        _ options: EnqueueOptions,
        isImported: Bool
    ) throws(QueueError) -> (KeyHeader?, [QueueRequest.Header]) {
        var key = options.idempotencyKey
        // Without a key, a header of that name is an ordinary header.
        guard key.source != .none else { return (nil, request.headers) }
        let name = key.headerName.lowercased()
        let given = request.headers.first { $0.name.lowercased() == name }
        if let given, key.source == .automatic { key.source = .value(given.value) }
        try RequestChecks.check(key, isImported: isImported)
        let others = request.headers.filter { $0.name.lowercased() != name }
        guard let value = key.value(method: request.method, isAtMostOnce: options.isAtMostOnce) else {
            return (nil, others)
        }
        return (KeyHeader(name: key.headerName, value: value, isQuoted: key.isQuoted), others)
    }
}

extension IdempotencyKey {
    /// Returns the key's value. A request that is sent at most once gets no random key, because the server never sees
    /// it twice.
    fileprivate func value(method: String, isAtMostOnce: Bool) -> String? {
        switch source {
        case .value(let value): value
        case .automatic where !HTTPMethod.isIdempotent(method) && !isAtMostOnce:
            Self.randomValue()
        case .automatic, .none: nil
        }
    }

    /// Returns a random key.
    static func randomValue() -> String { UUIDv4.make() }
}

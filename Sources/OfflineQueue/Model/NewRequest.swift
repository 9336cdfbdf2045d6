internal import ClientCore
package import Foundation

/// A validated request with defaults filled in for unset options.
package struct NewRequest: Sendable {
    package let id: String
    package let lane: LaneKey
    package let method: String
    package let url: String
    /// The header lines as ``HeaderText`` writes them, without the idempotency key.
    package let headers: String
    package let key: KeyHeader?
    package let options: EnqueueOptions
    /// The stored body. Empty until the caller has stored the content of the validated request.
    package var body: StoredBody

    /// The size of the URL and the headers in bytes.
    var headBytes: Int64 { Int64(url.utf8.count + headers.utf8.count) }
    /// The size that counts against the queue's limit: URL, headers and body, in bytes.
    package var size: Int64 { headBytes + body.size }

    /// - Throws: ``QueueError`` if the request or an option is invalid.
    package init(
        _ request: QueueRequest,
        options: EnqueueOptions = EnqueueOptions(),
        body: StoredBody = .none,
        for purpose: RequestChecks.Purpose = .store,
        now: Date = Date()
    ) throws(QueueError) {
        let origin = try RequestChecks.check(request, for: purpose)
        try RequestChecks.check(options, now: now)
        let mode: LaneKey.Mode = options.isFIFO ? .fifo : .parallel
        lane = LaneKey(origin: origin, label: options.lane ?? "", mode: mode)
        let (key, others) = try Self.key(of: request, options, for: purpose)
        id = options.id ?? UUIDv7.make()
        method = request.method
        url = request.url
        headers = HeaderText.encode(others)
        self.key = key
        self.options = options
        self.body = body
    }

    /// Returns the idempotency key and the other header lines. The caller may also give the key as a header.
    private static func key(
        of request: QueueRequest,
        _ options: EnqueueOptions,
        for purpose: RequestChecks.Purpose
    ) throws(QueueError) -> (KeyHeader?, [QueueRequest.Header]) {
        var key = options.idempotencyKey
        // Without a key, a header of that name is an ordinary header.
        guard key.source != .none else { return (nil, request.headers) }
        let name = key.headerName.lowercased()
        let given = request.headers.first { $0.name.lowercased() == name }
        if let given, key.source == .automatic { key.source = .value(given.value) }
        try RequestChecks.check(key, for: purpose)
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

package import NIOHTTP1

/// A complete request to the control API.
package struct ControlRequest: Sendable {
    /// A `name=value` pair of the query; `value` is `nil` if there is no `=`.
    package struct QueryItem: Hashable, Sendable {
        package let name: String
        package let value: String?

        package init(name: String, value: String?) {
            self.name = name
            self.value = value
        }
    }

    package let method: HTTPMethod
    /// The percent-decoded path without the query: `/v1/requests`.
    package let path: String
    /// The segments of the path between slashes. Each is decoded separately, so it may contain a slash.
    package let segments: [String]
    /// The values of the names in braces of the route, such as `id` in `/v1/requests/{id}`. Set by the router.
    package internal(set) var parameters: [String: String] = [:]
    /// The query items in their order, percent-decoded. A `+` is a literal plus (RFC 3986).
    package let query: [QueryItem]
    /// The header fields, at most ``ControlServer/Limits/headerBytes`` long.
    package let headers: HTTPHeaders
    /// The body, at most ``ControlServer/Limits/bodyBytes`` long.
    package let body: [UInt8]
    /// The process that sent the request; `nil` if it came over TCP.
    package let peer: PeerCredentials?
    /// The user who sent the request, and the access of that user. Set by the router.
    package internal(set) var caller = Caller(user: nil, access: .none)

    init(
        method: HTTPMethod,
        target: RequestTarget,
        headers: HTTPHeaders = [:],
        body: [UInt8] = [],
        peer: PeerCredentials?
    ) {
        self.method = method
        path = target.path
        segments = target.segments
        query = target.query
        self.headers = headers
        self.body = body
        self.peer = peer
    }
}

/// The parsed target of a request line (RFC 9112 §3.2).
struct RequestTarget: Hashable {
    /// The percent-decoded path without the query.
    let path: String
    /// The decoded segments of the path. The path is split before it is decoded, because an id may contain an encoded
    /// slash.
    let segments: [String]
    /// The percent-decoded query items in their order.
    let query: [ControlRequest.QueryItem]

    /// Parses the origin form (`/path?query`), or the absolute form (`http://host/path`), which every server must
    /// accept.
    ///
    /// Returns `nil` for all other forms. Also returns `nil` if percent-encoding is invalid, encodes a NUL or is not
    /// UTF-8.
    init?(_ target: String) {
        let parts = Self.withoutOrigin(target).split(
            separator: "?",
            maxSplits: 1,
            omittingEmptySubsequences: false
        )
        guard parts[0].first == "/", let path = percentDecoded(parts[0]) else { return nil }
        guard let query = Self.queryItems(parts.count == 2 ? parts[1] : "") else { return nil }
        self.path = path
        segments = parts[0].dropFirst().split(separator: "/", omittingEmptySubsequences: false)
            .compactMap(percentDecoded)
        self.query = query
    }

    private static func withoutOrigin(_ target: String) -> Substring {
        let scheme = "http://"
        guard target.lowercased().hasPrefix(scheme) else { return target[...] }
        return target.dropFirst(scheme.count).drop { $0 != "/" }
    }

    private static func queryItems(_ text: Substring) -> [ControlRequest.QueryItem]? {
        var items: [ControlRequest.QueryItem] = []
        for pair in text.split(separator: "&") {
            let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let decoded = sides.compactMap(percentDecoded)
            guard decoded.count == sides.count else { return nil }
            items.append(ControlRequest.QueryItem(name: decoded[0], value: decoded.dropFirst().first))
        }
        return items
    }
}

private func percentDecoded(_ text: Substring) -> String? {
    var decoded: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "%") else {
            decoded.append(byte)
            continue
        }
        guard let high = rest.popFirst().flatMap(hexDigit), let low = rest.popFirst().flatMap(hexDigit)
        else { return nil }
        decoded.append(high << 4 | low)
    }
    return decoded.contains(0) ? nil : String(validating: decoded, as: UTF8.self)
}

private func hexDigit(_ byte: UInt8) -> UInt8? {
    Character(UnicodeScalar(byte)).hexDigitValue.map(UInt8.init)
}

/// The kind of work that a connection does. Each class has its own limit, so one class cannot starve another.
///
/// A connection holds a slot of a class from the moment its request is complete until the response is ready. An upload
/// holds a slot of ``upload`` while its body is read. At all other times a connection holds no slot.
package enum ConnectionClass: String, Hashable, Sendable, CaseIterable {
    /// Requests to which the service responds immediately.
    case call
    /// `POST /v1/requests`, which may wait for a first attempt or for space in the queue.
    case send
    /// Requests that wait for an event, or that read or change much of the store.
    case wait
    /// Requests with a body longer than ``ControlServer/Limits/smallBodyBytes`` or of unknown length, until the body is
    /// complete. Then they enter the class of their route. Otherwise requests that wait for their servers would keep
    /// the slots of uploads.
    case upload
}

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

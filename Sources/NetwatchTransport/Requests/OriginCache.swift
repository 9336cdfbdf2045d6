/// What libcurl has made of the beginnings of URLs, up to their paths.
///
/// A program talks to few servers, and parsing takes a tenth of the time that a small transfer does.
struct OriginCache {
    /// For a program that talks to many. It then begins anew.
    private static let limit = 256
    /// In bytes: a name (RFC 1035 §2.3.4) and a port. What is longer is not kept.
    private static let longestAuthority = 255 + 6

    private var known: [String: CurlURL] = [:]

    /// - Throws: ``TransferFailure`` as ``CurlURL/init(parsing:)`` does. What is wrong with the path of a known
    ///   beginning libcurl says when it gets the URL.
    mutating func url(_ text: String) throws(TransferFailure) -> CurlURL {
        guard let origin = Self.plainOrigin(of: text) else { return try CurlURL(parsing: text) }
        if let url = known[origin] {
            try CurlURL.checkBytes(of: text)
            return url
        }
        let url = try CurlURL(parsing: text)
        if known.count == Self.limit { known = [:] }
        known[origin] = url
        return url
    }

    /// Scheme, host and port as they are written; `nil` where anything is written that could mean more than that, or
    /// is not to be kept: a user's name and password.
    private static func plainOrigin(of text: String) -> String? {
        guard let scheme = ["http://", "https://"].first(where: text.hasPrefix) else { return nil }
        let rest = text.utf8.dropFirst(scheme.utf8.count)
        let authority = rest.prefix {
            $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#")
        }
        // libcurl overlooks a third slash, and takes what follows for the host.
        guard (1...longestAuthority).contains(authority.count), authority.allSatisfy(isPlain) else {
            return nil
        }
        return String(text[..<authority.endIndex])
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
            UInt8(ascii: "-"), UInt8(ascii: ":"):
            true
        default: false
        }
    }
}

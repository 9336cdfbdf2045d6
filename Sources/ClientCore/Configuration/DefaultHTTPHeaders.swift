internal import NetwatchTransport

/// The header fields of the default session.
enum DefaultHTTPHeaders {
    /// The encodings that can be decoded, best first. A machine may lack the library of some of them.
    ///
    /// Alamofire 4 also offers `compress`. It cannot be decoded: a transfer with such a response would fail
    /// with `CURLE_BAD_CONTENT_ENCODING`.
    static let encodings = ["br", "gzip", "deflate"]

    /// Returns `Accept-Encoding`, `Accept-Language` and `User-Agent`.
    ///
    /// - Parameters:
    ///   - info: The properties that the fields are created from. Default: the properties of this program and machine.
    ///   - decoders: The encodings that can be decoded. Default: ``encodings``.
    static func headers(
        for info: ProgramInfo = .current,
        decoders: [String] = encodings
    ) -> HTTPHeaders {
        [
            "Accept-Encoding": acceptEncoding(decoders),
            "Accept-Language": acceptLanguage(PreferredLanguages.list(info.environment)),
            "User-Agent": UserAgent.text(for: info),
        ]
    }

    /// Returns the value of `Accept-Encoding`: the ``encodings`` that are in `decoders`, best first.
    ///
    /// If there are none, the value is `identity` (RFC 9110 §12.5.3). Without the field, the server could choose any
    /// encoding.
    static func acceptEncoding(_ decoders: [String]) -> String {
        let offered = encodings.filter(decoders.contains)
        return offered.isEmpty ? "identity" : ranked(offered)
    }

    /// Returns the value of `Accept-Language` with at most six languages. Qualities are written in tenths, so more
    /// than ten could not be ranked.
    static func acceptLanguage(_ languages: [String]) -> String {
        ranked(languages.prefix(6))
    }

    /// Returns the values with qualities (RFC 9110 §12.4.2): 1.0 for the first, and 0.1 less for each following one.
    private static func ranked(_ values: some Sequence<String>) -> String {
        values.enumerated()
            .map { "\($0.element);q=\($0.offset == 0 ? "1.0" : "0.\(10 - $0.offset)")" }
            .joined(separator: ", ")
    }
}

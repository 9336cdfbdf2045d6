internal import NetwatchTransport

/// The fields that a session sends unless it is told otherwise.
enum DefaultHTTPHeaders {
    /// What libcurl takes off a body again, if it was built with it. `compress`, which Alamofire 4 offers,
    /// it does not know: it would end the transfer with `CURLE_BAD_CONTENT_ENCODING`.
    static let encodings = ["br", "gzip", "deflate"]

    /// - Parameters:
    ///   - surroundings: What the fields are made of. Default: this machine and program.
    ///   - decoders: What libcurl takes off a body again. Default ``encodings``.
    static func headers(
        for surroundings: ProgramSurroundings = .current,
        decoders: [String] = encodings
    ) -> HTTPHeaders {
        [
            "Accept-Encoding": acceptEncoding(decoders),
            "Accept-Language": acceptLanguage(PreferredLanguages.list(surroundings.environment)),
            "User-Agent": UserAgent.text(for: surroundings),
        ]
    }

    /// In the order of ``encodings``, best first. `identity` (RFC 9110 §12.5.3) when there is none, because
    /// no field at all would allow every encoding.
    static func acceptEncoding(_ decoders: [String]) -> String {
        let offered = encodings.filter(decoders.contains)
        return offered.isEmpty ? "identity" : ranked(offered)
    }

    /// Up to six languages: the qualities are tenths.
    static func acceptLanguage(_ languages: [String]) -> String {
        ranked(languages.prefix(6))
    }

    /// Qualities (RFC 9110 §12.4.2) from 1.0 down by 0.1.
    private static func ranked(_ values: some Sequence<String>) -> String {
        values.enumerated()
            .map { "\($0.element);q=\($0.offset == 0 ? "1.0" : "0.\(10 - $0.offset)")" }
            .joined(separator: ", ")
    }
}

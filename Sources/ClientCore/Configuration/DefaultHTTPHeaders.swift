internal import NetwatchTransport

/// The header fields of the default session.
enum DefaultHTTPHeaders {
    /// The encodings that libcurl can decode, depending on its build. It cannot decode `compress`, which
    /// Alamofire 4 offers: the transfer would end with `CURLE_BAD_CONTENT_ENCODING`.
    static let encodings = ["br", "gzip", "deflate"]

    /// - Parameters:
    ///   - info: The values that the fields are made from. Default: this machine and program.
    ///   - decoders: The encodings that libcurl can decode. Default: ``encodings``.
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

    /// Returns the field in the order of ``encodings``, best first. `identity` (RFC 9110 §12.5.3) if there is
    /// none, because a missing field would allow every encoding.
    static func acceptEncoding(_ decoders: [String]) -> String {
        let offered = encodings.filter(decoders.contains)
        return offered.isEmpty ? "identity" : ranked(offered)
    }

    /// Returns the field with up to six languages, because qualities are written in tenths.
    static func acceptLanguage(_ languages: [String]) -> String {
        ranked(languages.prefix(6))
    }

    /// Appends qualities (RFC 9110 §12.4.2) from 1.0 down in steps of 0.1.
    private static func ranked(_ values: some Sequence<String>) -> String {
        values.enumerated()
            .map { "\($0.element);q=\($0.offset == 0 ? "1.0" : "0.\(10 - $0.offset)")" }
            .joined(separator: ", ")
    }
}

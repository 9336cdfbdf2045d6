/// A line of libcurl's log, from which the engine reads what libcurl does not report in any other way.
///
/// The texts differ between versions of libcurl. If a line is not recognised, both properties are `false`, and the
/// failure stays ambiguous.
struct LogLine {
    private let text: String

    init(_ bytes: some Collection<UInt8>) {
        text = String(decoding: bytes.prefix(256), as: UTF8.self)
    }

    /// Whether the line reports a GOAWAY frame that says that the server has processed no stream of the connection.
    ///
    /// libcurl 7.88.1 writes `recveived GOAWAY, error=0, last_stream=0` (sic). Later versions spell it differently and
    /// put a prefix before it.
    var refusesAllStreams: Bool {
        guard let stream = text.firstRange(of: "last_stream="), text.contains("GOAWAY") else { return false }
        return text[stream.upperBound...].prefix { $0.isNumber } == "0"
    }

    /// Whether the line reports that the server has ended the stream with `HTTP_1_1_REQUIRED`. libcurl writes
    /// `Downgrades to HTTP/1.1`.
    var requiresHTTP1: Bool { text.hasPrefix("Downgrades to HTTP/1.1") }
}

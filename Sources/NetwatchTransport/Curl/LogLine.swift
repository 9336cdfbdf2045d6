/// A line of libcurl's log. A line that is not recognised says nothing, which leaves a failure ambiguous.
struct LogLine {
    private let text: String

    init(_ bytes: some Collection<UInt8>) {
        text = String(decoding: bytes.prefix(256), as: UTF8.self)
    }

    /// Whether the server has processed no stream of the connection: `recveived GOAWAY, error=0, last_stream=0`. Later
    /// versions spell it differently and put a prefix before it.
    var refusesAllStreams: Bool {
        guard let stream = text.firstRange(of: "last_stream="), text.contains("GOAWAY") else { return false }
        return text[stream.upperBound...].prefix { $0.isNumber } == "0"
    }

    /// Whether the server has ended the stream with `HTTP_1_1_REQUIRED`: `Downgrades to HTTP/1.1`.
    var requiresHTTP1: Bool { text.hasPrefix("Downgrades to HTTP/1.1") }
}

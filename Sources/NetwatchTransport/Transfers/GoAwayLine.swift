/// Parses the line that libcurl logs for a `GOAWAY` frame: `recveived GOAWAY, error=0, last_stream=0`. Later versions
/// spell it differently and add a prefix. If a line is not recognised, the failure stays ambiguous.
enum GoAwayLine {
    /// Returns whether the server processed no stream of the connection.
    static func refusesAll(_ line: some Collection<UInt8>) -> Bool {
        let text = String(decoding: line.prefix(256), as: UTF8.self)
        guard let stream = text.firstRange(of: "last_stream="), text.contains("GOAWAY") else { return false }
        return text[stream.upperBound...].prefix { $0.isNumber } == "0"
    }
}

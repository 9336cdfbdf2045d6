/// The stored form of header lines: `Name: value` and a newline for each. No value contains CR, LF or NUL.
package enum HeaderText {
    package static func encode(_ headers: [QueueRequest.Header]) -> String {
        headers.map { "\($0.name): \($0.value)\n" }.joined()
    }

    /// Returns whether ``decode(_:)`` restores a value unchanged, because the value contains no CR, LF or NUL.
    static func isKept(_ value: String) -> Bool { !value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 } }

    /// The size in bytes of a header line as ``encode(_:)`` writes it.
    static func size(_ name: String, _ value: String) -> Int { name.utf8.count + value.utf8.count + 3 }

    /// Parses stored header lines.
    ///
    /// The text is split by bytes, not by characters. A value may begin with a combining character, which forms one
    /// `Character` with the space before it.
    package static func decode(_ text: String) -> [QueueRequest.Header] {
        text.utf8.split(separator: UInt8(ascii: "\n")).map { line in
            let name = line.prefix { $0 != UInt8(ascii: ":") }
            return QueueRequest.Header(
                name: String(Substring(name)),
                value: String(Substring(line.dropFirst(name.count + 2)))
            )
        }
    }
}

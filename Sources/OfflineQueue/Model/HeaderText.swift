/// Header lines as the store keeps them: `Name: value`, one line each. Values hold no CR, LF or NUL.
package enum HeaderText {
    package static func encode(_ headers: [QueueRequest.Header]) -> String {
        headers.map { "\($0.name): \($0.value)\n" }.joined()
    }

    /// Whether ``decode(_:)`` brings the value back.
    static func isKept(_ value: String) -> Bool { !value.utf8.contains { $0 == 0 || $0 == 10 || $0 == 13 } }

    /// How many bytes ``encode(_:)`` makes of a header line.
    static func size(_ name: String, _ value: String) -> Int { name.utf8.count + value.utf8.count + 3 }

    /// Bytes are looked at, not characters: a value may begin with one that combines with the space.
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

/// A parsed DNS query with one question, which also creates the replies to it (RFC 1035).
struct DNSMessage: Sendable {
    struct Answer {
        let type: UInt16
        let data: [UInt8]
    }

    /// The name in lower case, without the trailing dot.
    let name: String
    /// The queried record type: 1 for A, 28 for AAAA.
    let type: UInt16
    private let id: [UInt8]
    /// The bytes of the question section as received.
    private let question: [UInt8]

    init?(_ bytes: ArraySlice<UInt8>) {
        guard bytes.count > 16 else { return nil }
        var rest = bytes.dropFirst(12)
        var labels: [String] = []
        while let length = rest.popFirst(), length > 0 {
            guard length < 64, rest.count > length else { return nil }
            labels.append(String(decoding: rest.prefix(Int(length)), as: UTF8.self))
            rest = rest.dropFirst(Int(length))
        }
        guard rest.count >= 4, let first = rest.first else { return nil }
        type = UInt16(first) << 8 | UInt16(rest[rest.startIndex + 1])
        id = Array(bytes.prefix(2))
        question = Array(bytes[(bytes.startIndex + 12)..<(rest.startIndex + 4)])
        name = labels.joined(separator: ".").lowercased()
    }

    /// Returns the bytes of a reply.
    ///
    /// - Parameters:
    ///   - code: The response code: 0 for success, 2 for SERVFAIL, 3 for NXDOMAIN (RFC 1035 §4.1.1).
    ///   - answers: The records of the answer section.
    func response(code: UInt8 = 0, answers: [Answer]) -> [UInt8] {
        header(flags: 0x81, code: code, answers: answers.count) + question + answers.flatMap(Self.encode)
    }

    /// The bytes of a truncated reply, which makes the client repeat the query over TCP.
    var truncated: [UInt8] {
        header(flags: 0x83, code: 0, answers: 0) + question
    }

    private func header(flags: UInt8, code: UInt8, answers: Int) -> [UInt8] {
        id + [flags, 0x80 | code, 0, 1, UInt8(answers >> 8), UInt8(answers & 0xff), 0, 0, 0, 0]
    }

    /// Encodes a record with a TTL of 5 s. Its name is a pointer to the name in the question section.
    private static func encode(_ answer: Answer) -> [UInt8] {
        [0xc0, 12, 0, UInt8(answer.type), 0, 1, 0, 0, 0, 5, 0, UInt8(answer.data.count)] + answer.data
    }

    static func encode(_ name: String) -> [UInt8] {
        name.split(separator: ".").flatMap { [UInt8($0.utf8.count)] + Array($0.utf8) } + [0]
    }
}

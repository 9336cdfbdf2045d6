internal import NetwatchTestSupport

/// Bytes for an HTTP server: up to three valid requests with random changes anywhere, in the request line, the header
/// fields, the framing or the body.
struct MutatedMessage {
    /// Requests that the control API accepts.
    static let valid: [String] = [
        request("GET /healthz"),
        request("GET /v1/requests?limit=3&state=pending", "Accept: */*\r\n"),
        request("POST /v1/requests", "Content-Length: \(order.utf8.count)\r\n", order),
        request("POST /v1/requests", "Transfer-Encoding: chunked\r\n", chunked(order, at: 9)),
        request("PATCH /v1/bodies/part?offset=0", "Content-Length: 4\r\n", "body"),
    ]

    private static let order = #"{"url":"http://127.0.0.1:1/","method":"PUT","body":"c","queue":"always"}"#

    private static func request(_ line: String, _ fields: String = "", _ body: String = "") -> String {
        "\(line) HTTP/1.1\r\nHost: x\r\n\(fields)\r\n\(body)"
    }

    /// Returns the text in two chunks, the first of which has `size` bytes, and the end of the body. The text must be
    /// ASCII.
    private static func chunked(_ text: String, at size: Int) -> String {
        let chunks: [Substring] = [text.prefix(size), text.dropFirst(size), ""]
        return chunks.map { "\(String($0.count, radix: 16))\r\n\($0)\r\n" }.joined()
    }

    /// Texts at which parsers of HTTP fail.
    private static let fragments: [String] = [
        "\r\n", "\n", "\r", "\0", " ", ":", "%", "%00", "?", "#", "\r\n\r\n", " HTTP/9.9", "HTTP/1.0\r\n",
        "Host: y\r\n", "Content-Length: 1\r\n", "Content-Length: -1\r\n",
        "Content-Length: 18446744073709551616\r\n", "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n", "Connection: close\r\n", "Connection: upgrade\r\n",
        "Upgrade: h2c\r\n", "Expect: 100-continue\r\n", "ffffffffffffffff\r\n", "PRI * HTTP/2.0\r\n\r\n",
        String(repeating: "a", count: 20_000), String(repeating: "A: b\r\n", count: 200),
    ]

    /// The bytes, in the pieces in which they are sent.
    private(set) var pieces: [[UInt8]] = []

    init(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...3, using: &generator) {
            bytes += Array(Self.valid.randomElement(using: &generator)!.utf8)
        }
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            Self.change(&bytes, using: &generator)
        }
        while !bytes.isEmpty {
            let size = Int.random(in: 1...bytes.count, using: &generator)
            pieces.append(Array(bytes.prefix(size)))
            bytes.removeFirst(size)
        }
    }

    private static func change(_ bytes: inout [UInt8], using generator: inout SeededGenerator) {
        guard !bytes.isEmpty else { return }
        let index = Int.random(in: bytes.indices, using: &generator)
        switch Int.random(in: 0...9, using: &generator) {
        case 0...6: bytes.changeByte(using: &generator)
        case 7...8:
            let fragment = fragments.randomElement(using: &generator)!
            bytes.insert(contentsOf: Array(fragment.utf8), at: index)
        default: bytes.removeSubrange(index...)
        }
    }
}

extension [UInt8] {
    /// Replaces, removes or duplicates a random byte. There must be at least one.
    mutating func changeByte(using generator: inout SeededGenerator) {
        let index = Int.random(in: indices, using: &generator)
        switch Int.random(in: 0...2, using: &generator) {
        case 0: self[index] = UInt8.random(in: 0...255, using: &generator)
        case 1: remove(at: index)
        default: insert(self[index], at: index)
        }
    }
}

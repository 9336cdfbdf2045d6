internal import Testing

@testable internal import NetwatchTransport

/// The decoding of bodies in pieces of any size.
@Suite struct ContentDecoderTests {
    /// A body in one coding, or several, that is decoded to ``text``.
    struct Body: Sendable, CustomTestStringConvertible {
        let coding: String
        let bytes: [UInt8]

        var testDescription: String { coding }
    }

    static let text = String(repeating: "hello ", count: 20)
    static let gzip: [UInt8] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 203, 72, 205, 201, 201, 87, 200, 160, 59, 9, 0, 47, 250, 248, 72,
        120, 0, 0, 0,
    ]
    private static let deflated: [UInt8] = [203, 72, 205, 201, 201, 87, 200, 160, 59, 9, 0]
    private static let brotli: [UInt8] = [
        27, 119, 0, 248, 141, 148, 110, 222, 68, 85, 134, 150, 108, 32, 111, 17, 91, 28, 128, 197, 1,
    ]
    /// ``brotli`` in a gzip body, in a block without compression.
    private static let gzippedBrotli: [UInt8] =
        [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 1, 21, 0, 234, 255] + brotli + [133, 148, 68, 5, 21, 0, 0, 0]
    private static let zstandard: [UInt8] = [
        40, 181, 47, 253, 0, 88, 109, 0, 0, 48, 104, 101, 108, 108, 111, 32, 1, 0, 47, 105, 41, 2,
    ]

    static let bodies = [
        Body(coding: "gzip", bytes: gzip), Body(coding: "X-GZip", bytes: gzip),
        Body(coding: "deflate", bytes: [120, 156] + deflated + [119, 186, 44, 17]),
        Body(coding: "deflate", bytes: deflated), Body(coding: "br", bytes: brotli),
        Body(coding: "zstd", bytes: zstandard), Body(coding: "gzip , identity", bytes: gzip),
        Body(coding: "br, gzip", bytes: gzippedBrotli),
    ]

    /// Decodes bytes in pieces. Returns the text, and whether the body is complete.
    private func decode(_ bytes: [UInt8], _ coding: String, piece: Int) throws -> (String, isComplete: Bool) {
        let decoder = try #require(ContentDecoder([coding]))
        var decoded: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            try bytes[start..<min(start + piece, bytes.count)].withUnsafeBytes { bytes in
                try decoder.decode(bytes, counting: { _ in true }) { part in
                    decoded += part
                    return true
                }
            }
        }
        return (String(decoding: decoded, as: UTF8.self), decoder.isComplete)
    }

    @Test(arguments: bodies, [1, 2, 7, 1000])
    func `a body is decoded in pieces of any size`(body: Body, piece: Int) throws {
        let (text, isComplete) = try decode(body.bytes, body.coding, piece: piece)
        #expect(text == Self.text)
        #expect(isComplete)
    }

    @Test(arguments: bodies) func `a truncated body is not complete`(body: Body) throws {
        for count in 1..<body.bytes.count {
            let (text, isComplete) = try decode(Array(body.bytes.prefix(count)), body.coding, piece: count)
            #expect(Self.text.hasPrefix(text) && !isComplete, "\(count) bytes")
        }
    }

    @Test(arguments: bodies) func `bytes after the end are an error`(body: Body) throws {
        for piece in [1, 1000] {
            #expect(throws: ContentDecoder.Failure.invalid(body.coding)) {
                try decode(body.bytes + [0x78, 0x78, 0x78, 0x78, 0x78], body.coding, piece: piece)
            }
        }
    }

    @Test(arguments: [bodies[0], bodies[5]]) func `a body may have several parts`(body: Body) throws {
        for piece in [1, 1000] {
            let (text, isComplete) = try decode(body.bytes + body.bytes, body.coding, piece: piece)
            #expect(text == Self.text + Self.text)
            #expect(isComplete)
        }
    }

    @Test func `a body without bytes is complete`() throws {
        #expect(try #require(ContentDecoder(["gzip"])).isComplete)
    }

    @Test(arguments: [[], [""], ["identity"], ["none"], [" , "]])
    func `a body without a coding has no decoder`(
        values: [String]
    ) {
        #expect(ContentDecoder(values) == nil)
    }

    @Test(arguments: ["compress", "gzip, compress", "gzip, gzip, gzip", "br, zstd, gzip", "gz ip"])
    func `an unknown coding or too many codings are refused`(coding: String) {
        #expect(throws: ContentDecoder.Failure.unsupported(coding)) {
            try decode(Self.gzip, coding, piece: 1000)
        }
    }

    /// A zstd frame with the text `hello` and a window of `(8 + mantissa) / 8 << (10 + exponent)` bytes.
    private static func frame(windowExponent exponent: UInt8, mantissa: UInt8) -> [UInt8] {
        [40, 181, 47, 253, 0, exponent << 3 | mantissa, 41, 0, 0] + Array("hello".utf8)
    }

    @Test func `a zstd window of more than 8 MiB is refused`() throws {
        for piece in [1, 1000] {
            let (text, isComplete) = try decode(
                Self.frame(windowExponent: 13, mantissa: 0),
                "zstd",
                piece: piece
            )
            #expect(text == "hello" && isComplete)
            for (exponent, mantissa) in [(13, 1), (14, 0), (17, 0), (31, 7)] as [(UInt8, UInt8)] {
                #expect(throws: ContentDecoder.Failure.invalid("zstd")) {
                    try decode(
                        Self.frame(windowExponent: exponent, mantissa: mantissa),
                        "zstd",
                        piece: piece
                    )
                }
            }
        }
    }

    @Test(arguments: [0x25, 0x26, 0x27] as [UInt8])
    func `a zstd frame in a format older than RFC 8878 is refused`(version: UInt8) throws {
        // The text `hello` in a block without compression. The formats 0.5, 0.6 and 0.7 differ in the header's length.
        let header: [UInt8] = [version, 181, 47, 253, 0] + (version == 0x27 ? [0] : [])
        let frame = header + [64, 0, 5] + Array("hello".utf8) + [192, 0, 0]
        for (bytes, piece) in [(frame, 1), (frame, 1000), (Self.zstandard + frame, 1000)] {
            #expect(throws: ContentDecoder.Failure.invalid("zstd")) {
                try decode(bytes, "zstd", piece: piece)
            }
        }
    }

    @Test func `a zstd frame to skip has no text`() throws {
        let skipped: [UInt8] = [0x5f, 42, 77, 24, 2, 0, 0, 0, 1, 2]
        for piece in [1, 1000] {
            let (text, isComplete) = try decode(
                skipped + Self.zstandard + skipped,
                "zstd",
                piece: piece
            )
            #expect(text == Self.text && isComplete)
        }
    }

    @Test func `the bytes of every decoder count`() throws {
        let decoder = try #require(ContentDecoder(["br, gzip"]))
        var (count, text) = (0, 0)
        try Self.gzippedBrotli.withUnsafeBytes { bytes in
            try decoder.decode(
                bytes,
                counting: {
                    count += $0; return true
                }
            ) { part in
                text += part.count
                return true
            }
        }
        #expect(count == Self.brotli.count + text)
        let limited = try #require(ContentDecoder(["br, gzip"]))
        try Self.gzippedBrotli.withUnsafeBytes { bytes in
            try limited.decode(bytes, counting: { _ in false }) { _ in
                Issue.record("bytes beyond the limit were decoded")
                return true
            }
        }
    }

    @Test func `the rest is not decoded after the receiver has refused a part`() throws {
        let decoder = try #require(ContentDecoder(["gzip"]))
        var count = 0
        try Self.gzip.withUnsafeBytes { bytes in
            try decoder.decode(bytes, counting: { _ in true }) { _ in
                count += 1
                return false
            }
        }
        #expect(count == 1)
    }
}

internal import ClientTestProcess
internal import Foundation
internal import NetwatchTestSupport
internal import Testing

/// Decompression bombs: small bodies that are decoded to very large ones.
@Suite(.timeLimit(.minutes(5))) struct HostileEncodingTests {
    /// A gzip header without a name or a time (RFC 1952 §2.3).
    private static let gzipHead: [UInt8] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]
    /// The start of a block of zeros, as zlib compresses it: one zero, and a code in which two zero bits stand for 258
    /// further zeros. So each zero byte that follows is decoded to 1032 zeros.
    private static let zeros: [UInt8] = [
        0xec, 0xc1, 0x01, 0x01, 0, 0, 0, 0x80, 0x90, 0xfe, 0xaf, 0xee, 0x08, 0x0a,
    ]
    /// The header of a zstd frame with a window of 1 MiB (RFC 8878 §3.1.1). The next constant is a block that repeats a
    /// zero 131,072 times (§3.1.1.2).
    private static let zstdHead: [UInt8] = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50]
    private static let zstdBlock: [UInt8] = [0x02, 0x00, 0x10, 0x00]

    /// A bomb: its first bytes, and the bytes that may follow without end.
    struct Bomb: Sendable, CustomTestStringConvertible {
        let coding: String
        let head: [UInt8]
        var rest = [UInt8](repeating: 0, count: 16384)

        var testDescription: String { coding }
    }

    private static var bombs: [Bomb] {
        [
            Bomb(coding: "gzip", head: gzipHead + zeros),
            Bomb(coding: "gzip, gzip", head: twice),
            Bomb(
                coding: "zstd",
                head: zstdHead,
                rest: [[UInt8]](repeating: zstdBlock, count: 4096).flatMap { $0 }
            ),
        ]
    }

    /// A gzip stream inside a gzip stream: the inner header in a stored block, and then compressed zeros.
    private static var twice: [UInt8] {
        let inner = gzipHead + zeros
        let count = UInt8(inner.count)
        return gzipHead + [0, count, 0, ~count, 0xff] + inner + zeros
    }

    private static func answer(_ bomb: Bomb, then next: ScriptedServer.Action) -> ScriptedServer.Action {
        .send(
            "HTTP/1.1 200 OK\r\nContent-Encoding: \(bomb.coding)\r\n\r\n",
            then: .send(bomb.head, then: next)
        )
    }

    private func check(_ bomb: Bomb, _ change: (inout HostileCase) -> Void) async throws {
        try await HostileCase("", .dataLengthExceedsMaximum, 63, status: 200) { _ in
            Self.answer(bomb, then: .flood(bomb.rest))
        }.with { hostile in
            hostile.acceptedEncodings = "gzip, zstd"
            change(&hostile)
        }.check()
    }

    @Test(arguments: bombs) func `decompression stops at the memory limit`(bomb: Bomb)
        async throws
    {
        try await check(bomb) { ($0.kind, $0.byteCount) = (.limited(1 << 20), 1 << 20) }
    }

    @Test func `the maximum gzip compression ratio is decoded up to a limit of 16 MiB`() async throws {
        try await check(Self.bombs[0]) { ($0.kind, $0.byteCount) = (.limited(16 << 20), 16 << 20) }
    }

    /// Only the timeout ends these transfers, because they have no limit of bytes. In the meantime the engine must
    /// continue with its other work.
    @Test(arguments: [HostileOptions.Kind.download, .slowStream])
    func `the maximum gzip compression ratio does not exhaust memory`(kind: HostileOptions.Kind) async throws
    {
        try await check(Self.bombs[0]) { hostile in
            (hostile.kind, hostile.totalTimeout) = (kind, 1000)
            (hostile.error, hostile.code) = (.timedOut, 28)
        }
    }

    @Test(arguments: bombs.dropFirst(), [HostileOptions.Kind.download, .slowStream])
    func `a higher ratio than gzip's maximum is refused`(bomb: Bomb, kind: HostileOptions.Kind) async throws {
        try await check(bomb) { hostile in
            hostile.kind = kind
            (hostile.error, hostile.code) = (.cannotDecodeContentData, 61)
        }
    }

    @Test func `an invalid, unknown or excessive content coding is an error`() async throws {
        let codings = ["gzip", [String](repeating: "gzip", count: 7).joined(separator: ", "), "compress"]
        for coding in codings {
            let text = "HTTP/1.1 200 OK\r\nContent-Encoding: \(coding)\r\n\r\nhello"
            try await HostileCase(
                "",
                .cannotDecodeContentData,
                61,
                status: 200,
                text
            )
            .with { $0.acceptedEncodings = "gzip" }
            .check()
        }
    }
}

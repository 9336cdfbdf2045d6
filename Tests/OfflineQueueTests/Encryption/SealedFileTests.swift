internal import Foundation
internal import NetwatchTransport
internal import Testing

@testable internal import OfflineQueue

/// Encrypted bodies in the spool.
@Suite(.timeLimit(.minutes(5))) struct SealedFileTests {
    private let directory = TemporaryDirectory(marker: "sealed")
    private let keys: TestKeys
    private let spool: BodySpool

    init() async throws {
        keys = try TestKeys()
        spool = try await BodySpool.opening(directory.path, keys: try keys.ring(TestKeys.first))
    }

    private static let chunk = 65_536 + 16

    private func bytes(_ count: Int) -> Data {
        Data((0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    }

    private func change(_ body: SpooledBody, _ change: (inout Data) -> Void) throws {
        let url = URL(filePath: "\(directory.path)/\(body.name)")
        var content = try Data(contentsOf: url)
        change(&content)
        try content.write(to: url)
    }

    @Test(arguments: [1, 65_535, 65_536, 65_537, 131_072, 300_001])
    func `an encrypted body of any size is read back, and its file does not contain it`(count: Int)
        async throws
    {
        let plain = bytes(count)
        let body = try await spool.store(plain)
        #expect(body.size == Int64(count) && body.sealedKey != nil)
        #expect(try await spool.open(body).content() == plain)
        let content = try Data(contentsOf: URL(filePath: "\(directory.path)/\(body.name)"))
        #expect(content.count == count + 16 * ((count + 65_535) / 65_536))
        #expect(count < 16 || content.range(of: plain.prefix(16)) == nil)
    }

    @Test func `a body in pieces of any length is one encrypted body`() async throws {
        let plain = bytes(200_000)
        let writer = try spool.makeWriter(limit: 200_000)
        for offset in stride(from: 0, to: plain.count, by: 70_001) {
            try await writer.append(plain.dropFirst(offset).prefix(70_001))
        }
        let body = try await writer.finish()
        let reader = try await spool.open(body).makeReader()
        var (read, piece) = (Data(), Data(count: 999))
        while case let count = try piece.withUnsafeMutableBytes({ try reader.read(into: $0) }), count > 0 {
            read += piece.prefix(count)
        }
        #expect(read == plain)
    }

    @Test func `an empty encrypted body is read back`() async throws {
        let body = try await spool.makeWriter(limit: 10).finish()
        #expect(body.size == 0)
        #expect(try await spool.open(body).content().isEmpty)
    }

    @Test func `changed, exchanged, repeated and missing chunks are detected`() async throws {
        let plain = bytes(3 * 65_536)
        let changes: [(String, (inout Data) -> Void)] = [
            ("a changed byte", { $0[70_000] ^= 1 }),
            (
                "exchanged chunks",
                { data in
                    let (first, second) = (
                        data.prefix(Self.chunk), data.dropFirst(Self.chunk).prefix(Self.chunk)
                    )
                    data = second + first + data.dropFirst(2 * Self.chunk)
                }
            ),
            ("a missing last chunk", { $0 = $0.prefix(2 * Self.chunk) }),
            ("a repeated chunk", { $0 = $0 + $0.suffix(Self.chunk) }),
            ("a cut chunk", { $0 = $0.dropLast(7) }), ("a cut tag", { $0 = $0.prefix(2 * Self.chunk + 5) }),
            ("an empty file", { $0 = Data() }),
        ]
        for (name, change) in changes {
            let body = try await spool.store(plain)
            try self.change(body, change)
            guard case .changed = await spool.verify(body) else {
                Issue.record("\(name) was not detected")
                continue
            }
        }
    }

    @Test func `a file is not accepted under the name of another one`() async throws {
        let (one, two) = (try await spool.store(bytes(70_000)), try await spool.store(bytes(70_000)))
        let files = FileManager.default
        try files.removeItem(atPath: "\(directory.path)/\(two.name)")
        try files.moveItem(atPath: "\(directory.path)/\(one.name)", toPath: "\(directory.path)/\(two.name)")
        guard case .changed = await spool.verify(two) else { return #expect(Bool(false), "not detected") }
    }

    @Test func `without its key a body is unreadable for now, and with it readable again`() async throws {
        let body = try await spool.store(bytes(70_000))
        let other = try await BodySpool.opening(directory.path, keys: try keys.ring(TestKeys.second))
        guard case .unreadable(let error) = await other.verify(body) else {
            return #expect(Bool(false), "it must not be given up")
        }
        #expect("\(error)".contains("contains the wrong key"))
        let both = try await BodySpool.opening(
            directory.path,
            keys: try keys.ring(TestKeys.second, TestKeys.first)
        )
        #expect(await both.verify(body) == nil)
    }
}

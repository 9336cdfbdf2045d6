internal import Foundation
internal import NetwatchEventLoop
internal import Testing

@testable internal import OfflineQueue

/// The cipher, and the file of keys.
@Suite struct EncryptionKeyTests {
    private let file: TestKeys

    init() throws { file = try TestKeys() }

    private func key(_ byte: UInt8) throws -> EncryptionKey {
        try EncryptionKey { bytes throws(SystemError) in
            for index in bytes.indices { bytes[index] = byte }
        }
    }

    private func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// The accumulated test vectors of the specification cover both values of the bit that CMAC's doubling tests.
    @Test(arguments: [
        (1 as UInt8, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"),
        (3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"),
    ])
    func `the cipher has the results of the specification's test vectors`(
        byte: UInt8,
        context: String,
        sealed: String
    ) throws {
        let (plain, nonce) = (Array("XAES-256-GCM".utf8), Array("ABCDEFGHIJKLMNOPQRSTUVWX".utf8))
        var output = [UInt8](repeating: 0, count: plain.count + EncryptionKey.overhead)
        output.replaceSubrange(5..<29, with: nonce)
        try output.withUnsafeMutableBytes { output in
            try plain.withUnsafeBytes { try key(byte).seal($0, context, into: output) }
        }
        #expect(hex(output.dropFirst(29)) == sealed)
    }

    @Test func `different values never have the same context`() {
        let values: [(String, [String?])] = [
            ("a", []), ("a", [nil]), ("a", [""]), ("a", ["b", "c"]), ("a", ["bc", nil]), ("a", [nil, "bc"]),
            ("a1:b,", ["c"]), ("a", ["1:b,", "c"]),
        ]
        let contexts = values.map { SealedPart.content.context(of: $0.0, $0.1) }
        #expect(Set(contexts).count == values.count)
    }

    @Test func `a value can be opened only unchanged, with its key and its context`() throws {
        let key = try key(7)
        let plain = Data("value".utf8)
        let sealed = try plain.withUnsafeBytes { try key.seal($0, context: "headers:a") }
        func open(_ sealed: Data, _ key: EncryptionKey, _ context: String) throws -> Data {
            var opened = Data(count: sealed.count - EncryptionKey.overhead)
            try opened.withUnsafeMutableBytes { opened in
                try sealed.withUnsafeBytes { try key.open($0, context: context, into: opened) }
            }
            return opened
        }
        #expect(try open(sealed, key, "headers:a") == plain)
        #expect(throws: SystemError.self) { try open(sealed, key, "headers:b") }
        #expect(throws: SystemError.self) { try open(sealed, try self.key(8), "headers:a") }
        for index in sealed.indices where !(1...4).contains(index) {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: SystemError.self, "byte \(index)") { try open(changed, key, "headers:a") }
        }
        let again = try plain.withUnsafeBytes { try key.seal($0, context: "headers:a") }
        #expect(sealed != again, "each value has its own nonce")
    }

    // MARK: Files

    @Test func `comments, spaces, capital digits and a byte order mark are accepted in a key file`() throws {
        let text = "\u{feff}# rotated in May\r\n\n  \(TestKeys.second.uppercased())\t\r\n\(TestKeys.first)"
        let ring = try KeyFile(path: try file.write(text)).keys()
        #expect(
            ring.keys.map(\.id) == [
                try file.ring(TestKeys.second).keys[0].id, try file.ring(TestKeys.first).keys[0].id,
            ]
        )
        #expect(ring.keys.map(\.id).allSatisfy { $0.count == 8 })
    }

    @Test(arguments: [
        ("", 0o600, "is empty"), ("# nothing\n", 0o600, "contains no key"),
        ("\(TestKeys.first)\n12\n", 0o600, "line 2: 2 characters"),
        ("\n\n\(TestKeys.first)\n12\n", 0o600, "line 4: 2 characters"),
        (String(repeating: "x", count: 64), 0o600, "line 1: 64 characters"),
        ("\(TestKeys.first)\n\(TestKeys.first)", 0o600, "twice"),
        (TestKeys.first, 0o604, "has the mode 0604; use `chmod 600`"),
        (String(repeating: "#", count: 5000), 0o600, "5000 bytes; at most 4095"),
    ])
    func `an unusable key file is refused with the reason`(text: String, mode: Int, reason: String) throws {
        let path = try file.write(text, mode: mode)
        let error = try #require(throws: QueueError.self) { try KeyFile(path: path).keys() }
        #expect(error.code == .encryptionKeyUnusable && error.path == path)
        #expect(error.message.contains(reason), "\(error.message)")
        #expect(!error.message.contains(TestKeys.first))
    }

    @Test func `a missing key file and a directory are refused`() throws {
        for (path, reason) in [("/nonexistent/key", "No such file"), ("/", "is not a regular file")] {
            let error = try #require(throws: QueueError.self) { try KeyFile(path: path).keys() }
            #expect(error.message.contains(reason), "\(error.message)")
        }
    }

    @Test func `a queue with an unusable key file is not opened, and its directory is not created`()
        async throws
    {
        let directory = TemporaryDirectory()
        var configuration = OfflineQueue.Configuration(directory: directory.path)
        configuration.encryptionKeyFile = try file.write("secret")
        let error = await #expect(throws: QueueError.self) {
            _ = try await OfflineQueue(configuration: configuration, sender: FakeSender(), gate: FakeGate())
        }
        #expect(error?.code == .encryptionKeyUnusable)
        #expect(error?.message.contains("secret") == false)
        #expect(directory.permissions() == nil)
    }
}

internal import Foundation
internal import NetwatchNetlink
internal import NetwatchTestSupport
internal import Testing

@Suite struct NetlinkRecordingTests {
    private let directory: ScratchDirectory
    private let path: String

    init() throws {
        directory = try ScratchDirectory()
        path = directory.file("recording")
    }

    private let records = [
        NetlinkRecording.Record(.datagram([1, 2, 3]), monotonic: 7, wall: 1_700_000_000_123_456_789),
        NetlinkRecording.Record(.overrun, monotonic: 8, wall: -1),
        NetlinkRecording.Record(.datagram([]), monotonic: .max, wall: .min),
    ]

    private func write(_ records: [NetlinkRecording.Record], replacesExisting: Bool = false) throws {
        var writer = try NetlinkRecording.Writer.creating(path, replacesExisting: replacesExisting)
        for record in records { try writer.add(record) }
    }

    private func read() throws(NetlinkRecording.Failure) -> [NetlinkRecording.Record] {
        var reader = try NetlinkRecording.Reader.opening(path)
        var records: [NetlinkRecording.Record] = []
        while let record = try reader.next() { records.append(record) }
        return records
    }

    private func bytes() throws -> Data {
        try Data(contentsOf: URL(fileURLWithPath: path))
    }

    private func replace(_ bytes: some Sequence<UInt8>) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: path))
    }

    @Test func `written records are read back`() throws {
        try write(records)
        #expect(try read() == records)
        #expect(try NetlinkRecording.check(path) == 3)
    }

    @Test func `the initial state is read back`() throws {
        let state = NetlinkRecording.Record(.initialState([4, 5]), monotonic: 6, wall: 7)
        try write([state] + records)
        #expect(try read() == [state] + records)
        let bytes = try bytes()
        #expect(bytes[8] == 2 && bytes[16] == 3)
    }

    @Test func `a recording is private to its user and not overwritten by default`() throws {
        try write(records)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(throws: (any Error).self) { try write([]) }
        #expect(try read() == records)
        try shell("chmod 644 \(path)")
        try write([records[0]], replacesExisting: true)
        #expect(try read() == [records[0]])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions]
        #expect(mode as? Int == 0o600)
    }

    @Test func `only a regular file is replaced`() throws {
        try shell("mkfifo \(path)")
        #expect(throws: (any Error).self) { try write([], replacesExisting: true) }
        try shell("ln -s /dev/null \(path).link")
        #expect(throws: (any Error).self) {
            _ = try NetlinkRecording.Writer.creating(path + ".link", replacesExisting: true)
        }
    }

    @Test func `a recording truncated within a record is rejected with the offset`() throws {
        try write(records)
        let whole = try bytes()
        let ends = [16: 0, 16 + 27: 1, 16 + 27 + 24: 2, 16 + 27 + 24 + 24: 3]
        for length in 8..<whole.count {
            try replace(whole.prefix(length))
            if let count = ends[length] {
                #expect(try NetlinkRecording.check(path) == count)
            } else {
                let start = ends.keys.filter { $0 < length }.max() ?? 0
                #expect(throws: NetlinkRecording.Failure.truncated(offset: start)) {
                    try NetlinkRecording.check(path)
                }
            }
        }
    }

    @Test func `a file without the header is rejected`() throws {
        for text in ["", "netwatc", "#!/bin/sh\necho netwatch"] {
            try replace(text.utf8)
            #expect(throws: NetlinkRecording.Failure.notARecording) { try NetlinkRecording.check(path) }
        }
        #expect(throws: NetlinkRecording.Failure.notAFile) { try NetlinkRecording.check("/dev/zero") }
        #expect(throws: NetlinkRecording.Failure.notAFile) { try NetlinkRecording.check(directory.path) }
    }

    @Test func `an unknown version, an unknown kind and an invalid length are rejected with the offset`()
        throws
    {
        try write(records)
        var bytes = try bytes()
        for version: UInt8 in [1, 3] {
            bytes[8] = version
            try replace(bytes)
            #expect(throws: NetlinkRecording.Failure.unknownVersion(UInt32(version))) {
                try NetlinkRecording.check(path)
            }
        }
        (bytes[8], bytes[43]) = (2, 9)
        try replace(bytes)
        #expect(throws: NetlinkRecording.Failure.unknownKind(9, offset: 43)) {
            try NetlinkRecording.check(path)
        }
        (bytes[43], bytes[47]) = (2, 1)
        try replace(bytes)
        #expect(throws: NetlinkRecording.Failure.badLength(1, offset: 43)) {
            try NetlinkRecording.check(path)
        }
        (bytes[47], bytes[23]) = (0, 0xff)
        try replace(bytes)
        #expect(throws: NetlinkRecording.Failure.badLength(0xff00_0003, offset: 16)) {
            try NetlinkRecording.check(path)
        }
    }

    @Test func `an error message contains the offset and the accepted version`() {
        let failures: [(NetlinkRecording.Failure, String)] = [
            (.truncated(offset: 43), "offset 43"),
            (.unknownVersion(1), "version 1 at offset 8; this program reads version 2"),
            (.badLength(7, offset: 16), "at offset 16"), (.unknownKind(9, offset: 43), "kind 9 at offset 43"),
        ]
        for (failure, words) in failures { #expect("\(failure)".contains(words)) }
    }

    /// Checks for random input that reading ends and returns no more than the file contains.
    @Test func `random bytes are rejected or read without an endless loop`() throws {
        let seed =
            ProcessInfo.processInfo.environment["NETWATCH_SEED"].flatMap(UInt64.init)
            ?? UInt64.random(in: 0..<(.max))
        var random = SeededGenerator(seed: seed)
        try write(records)
        let whole = try bytes()
        for _ in 0..<2000 {
            var hostile =
                whole
                + Data(
                    (0..<Int.random(in: 0..<80, using: &random)).map { _ in
                        UInt8.random(in: 0...255, using: &random)
                    }
                )
            for _ in 0..<Int.random(in: 0..<4, using: &random) {
                // Most iterations keep a valid header, so that the reader parses the records after it.
                let place = Int.random(
                    in: Bool.random(using: &random) ? 0..<16 : 16..<hostile.count,
                    using: &random
                )
                hostile[place] = UInt8.random(in: 0...255, using: &random)
            }
            try replace(hostile)
            let read = (try? read()) ?? []
            let notifications = read.flatMap { record in
                if case .datagram(let bytes) = record.content {
                    NetlinkNotification.all(in: bytes)
                } else {
                    []
                }
            }
            #expect(read.count + notifications.count <= hostile.count, "seed \(seed)")
        }
    }
}

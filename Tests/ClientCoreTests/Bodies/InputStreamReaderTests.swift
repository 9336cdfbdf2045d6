internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import Testing

@testable internal import ClientCore

/// Reading streams that are uploaded.
@Suite struct InputStreamReaderTests {
    private func next(_ count: Int, of reader: InputStreamReader) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0xff, count: count)
        let read = try bytes.withUnsafeMutableBytes { try reader.read(into: $0) }
        return Array(bytes.prefix(read))
    }

    @Test func `a stream is read to its end, and later reads return 0`() throws {
        let stream = InputStream(data: Data(0..<10))
        let reader = InputStreamReader(stream)
        #expect(stream.streamStatus == .notOpen)
        #expect(try next(4, of: reader) == [0, 1, 2, 3])
        #expect(try next(0, of: reader) == [])
        #expect(try next(100, of: reader) == [4, 5, 6, 7, 8, 9])
        #expect(try next(1, of: reader) == [])
        #expect(stream.streamStatus == .closed)
        #expect(try next(1, of: reader) == [])
    }

    @Test func `a file is read completely`() throws {
        let directory = try ScratchDirectory()
        let path = "\(directory.path)/file"
        let content = Data((0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        try content.write(to: URL(fileURLWithPath: path))
        let reader = InputStreamReader(try #require(InputStream(fileAtPath: path)))
        var received = Data()
        while case let bytes = try next(16384, of: reader), !bytes.isEmpty { received += bytes }
        #expect(received == content)
    }

    @Test func `an open stream is read from its current position`() throws {
        let stream = InputStream(data: Data([1, 2, 3]))
        stream.open()
        var first: UInt8 = 0
        let count = stream.read(&first, maxLength: 1)
        #expect(count == 1)
        #expect(try next(8, of: InputStreamReader(stream)) == [2, 3])
    }

    @Test func `a stream cannot be rewound`() throws {
        let reader = InputStreamReader(InputStream(data: Data([1])))
        #expect(!reader.rewind())
        _ = try next(1, of: reader)
        #expect(!reader.rewind())
    }

    @Test func `every read of a missing file is an error`() throws {
        let reader = InputStreamReader(try #require(InputStream(fileAtPath: "/nowhere/at/all")))
        for _ in 0..<2 {
            #expect(throws: SystemError(call: "open", errno: ENOENT)) { try next(1, of: reader) }
        }
    }

    @Test func `a directory is a read error`() throws {
        let reader = InputStreamReader(try #require(InputStream(fileAtPath: "/")))
        #expect(throws: SystemError(call: "read", errno: EISDIR)) { try next(1, of: reader) }
    }

    @Test func `a closed stream is an error`() throws {
        let stream = InputStream(data: Data([1]))
        stream.open()
        stream.close()
        #expect(throws: SystemError(call: "read", errno: EIO)) {
            try next(1, of: InputStreamReader(stream))
        }
    }

    @Test(arguments: [-1, 9, Int.min, Int.max])
    func `a custom stream that reports a wrong count is an error`(count: Int) throws {
        let stream = MiscountingStream(count: count)
        #expect(throws: SystemError(call: "read", errno: EIO)) {
            try next(8, of: InputStreamReader(stream))
        }
        #expect(stream.wasClosed)
    }

    @Test func `releasing the reader closes the stream`() throws {
        let stream = InputStream(data: Data([1, 2]))
        var reader: InputStreamReader? = InputStreamReader(stream)
        _ = try reader.map { try next(1, of: $0) }
        #expect(stream.streamStatus == .open)
        reader = nil
        #expect(stream.streamStatus == .closed)
    }
}

/// A stream whose `read` always returns the given count.
private final class MiscountingStream: InputStream {
    private let count: Int
    private(set) var wasClosed = false
    private var status = Stream.Status.notOpen

    init(count: Int) {
        self.count = count
        super.init(data: Data())
    }

    override var streamStatus: Stream.Status { status }
    override func open() { status = .open }
    override func close() {
        status = .closed
        wasClosed = true
    }
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength: Int) -> Int { count }
}

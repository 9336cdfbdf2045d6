internal import Dispatch
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport
internal import Testing

/// Request bodies from files and other blocking readers.
@Suite(.timeLimit(.minutes(5))) struct BufferedBodySourceTests {
    private let engine: TransferEngine
    private let scratch: ScratchDirectory
    private let server: ScriptedServer

    init() throws {
        engine = try TransferEngine()
        scratch = try ScratchDirectory()
        server = try ScriptedServer()
    }

    private func file(_ bytes: [UInt8]) throws -> String {
        try scratch.write(bytes, to: "body")
    }

    private func send(_ source: BufferedBodySource) async -> TransferRecorder.Record {
        var request = TransferRequest(url: server.url, method: "POST")
        request.body = .source(source)
        return await engine.run(request)
    }

    @Test(arguments: [0, 1, 65536, 131_072, 1_000_001])
    func `a file is sent unchanged`(count: Int) async throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let record = await send(try BufferedBodySource(path: file(bytes)))
        #expect(record.hasSucceeded)
        #expect(server.requests.first?.body == bytes)
        #expect(server.requests.first?.values(of: "Content-Length") == ["\(count)"])
    }

    @Test func `a file that shrinks or grows during the transfer fails it`() async throws {
        for size in [99_999, 100_001] {
            let path = try file([UInt8](repeating: 1, count: 100_000))
            let source = try BufferedBodySource(path: path)
            truncate(path, size)
            #expect(await send(source).failure?.code == 26)
        }
    }

    @Test func `only regular files are accepted`() throws {
        let fifo = scratch.file("fifo")
        #expect(mkfifo(fifo, 0o600) == 0)
        let cases: [(path: String, errno: CInt)] = [
            (scratch.file("missing"), ENOENT), (scratch.path, EISDIR), (fifo, EINVAL), ("/dev/zero", EINVAL),
            ("a\0b", EINVAL),
        ]
        for (path, errno) in cases {
            #expect {
                try FileReader(path: path)
            } throws: {
                ($0 as? SystemError)?.errno == errno
            }
        }
    }

    @Test func `reading ahead stops when the buffer is full`() async throws {
        let reader = CountingReader(chunks: 100)
        let source = BufferedBodySource(reader, length: nil)
        for taken in 0..<100 {
            #expect(reader.reads.values.count <= taken + 4)
            #expect(await first(of: source, upTo: 1 << 16) == UInt8(taken))
        }
    }

    @Test func `a failing reader reports its error`() async throws {
        let failure = await send(BufferedBodySource(CountingReader(chunks: 3, fails: true), length: nil))
            .failure
        #expect(failure?.code == 26)
        #expect(failure?.osErrno == EIO)
    }

    @Test func `a source can be rewound while its reader blocks`() async throws {
        let reader = CountingReader(chunks: 3, waitsBefore: 1)
        let source = BufferedBodySource(reader, length: nil)
        #expect(await first(of: source) == 0)
        try await reader.reads.wait { $0.count == 2 }
        #expect(source.rewind())
        reader.gate.signal()
        #expect(await first(of: source) == 0)
    }

    @Test func `a reader that cannot rewind after all fails the transfer with code 65`() async throws {
        let reader = CountingReader(chunks: 3, waitsBefore: 1, isRewindable: false)
        let source = BufferedBodySource(reader, length: nil)
        #expect(await first(of: source) == 0)
        try await reader.reads.wait { $0.count == 2 }
        #expect(source.rewind())
        reader.gate.signal()
        #expect(await send(source).failure?.code == 65)
    }

    /// Takes up to `count` bytes and returns the first one, which identifies its chunk.
    private func first(of source: BufferedBodySource, upTo count: Int = 1) async -> UInt8? {
        var bytes = [UInt8](repeating: 0, count: count)
        while true {
            switch bytes.withUnsafeMutableBytes({ source.read(into: $0) }) {
            case .bytes: return bytes[0]
            case .pending: await withCheckedContinuation { ready in source.whenReady { ready.resume() } }
            case .end, .failed: return nil
            }
        }
    }
}

/// A reader that fills each chunk with the number of the chunk.
private final class CountingReader: BlockingReader {
    let reads = Recorder<Int>()
    /// The semaphore that blocks the read of each chunk.
    let gate = DispatchSemaphore(value: 0)
    private let chunks: Int
    private let fails: Bool
    private let waitsBefore: Int?
    let isRewindable: Bool
    private let next = Lock(0)

    init(chunks: Int, fails: Bool = false, waitsBefore: Int? = nil, isRewindable: Bool = true) {
        self.chunks = chunks
        self.fails = fails
        self.waitsBefore = waitsBefore
        self.isRewindable = isRewindable
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int {
        let index = next.withLock { next in
            defer { next += 1 }
            return next
        }
        reads.record(index)
        if index == waitsBefore, reads.values.filter({ $0 == index }).count == 1 { gate.wait() }
        guard index < chunks else {
            if fails { throw SystemError(call: "read", errno: EIO) }
            return 0
        }
        buffer.initializeMemory(as: UInt8.self, repeating: UInt8(truncatingIfNeeded: index))
        return buffer.count
    }

    func rewind() -> Bool {
        if isRewindable { next.withLock { $0 = 0 } }
        return isRewindable
    }
}

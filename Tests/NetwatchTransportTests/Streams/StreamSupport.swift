internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

extension StreamConnection {
    /// Reads and waits for the result.
    nonisolated func read(_ counts: ClosedRange<Int>, timeout: Duration? = nil) async -> StreamRead {
        await withCheckedContinuation { continuation in
            read(atLeast: counts.lowerBound, atMost: counts.upperBound, timeout: timeout) {
                continuation.resume(returning: $0)
            }
        }
    }

    /// Writes and waits for the result.
    nonisolated func write(_ bytes: [UInt8], timeout: Duration? = nil) async -> TransferFailure? {
        await withCheckedContinuation { continuation in
            write(bytes, timeout: timeout) { continuation.resume(returning: $0) }
        }
    }

    /// Reads until the end of the stream or a failure.
    nonisolated func readAll() async -> (bytes: [UInt8], failure: TransferFailure?) {
        var all: [UInt8] = []
        while true {
            let read = await read(1...65536)
            all += read.bytes
            if read.isAtEnd || read.failure != nil { return (all, read.failure) }
        }
    }
}

/// Returns bytes that differ by position.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

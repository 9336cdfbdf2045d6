internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import NetwatchTransport

extension StreamConnection {
    /// A read that is waited for.
    nonisolated func read(_ counts: ClosedRange<Int>, timeout: Duration? = nil) async -> StreamRead {
        await withCheckedContinuation { continuation in
            read(atLeast: counts.lowerBound, atMost: counts.upperBound, timeout: timeout) {
                continuation.resume(returning: $0)
            }
        }
    }

    /// A write that is waited for.
    nonisolated func write(_ bytes: [UInt8], timeout: Duration? = nil) async -> TransferFailure? {
        await withCheckedContinuation { continuation in
            write(bytes, timeout: timeout) { continuation.resume(returning: $0) }
        }
    }

    /// Everything until the end, or the failure.
    nonisolated func readAll() async -> (bytes: [UInt8], failure: TransferFailure?) {
        var all: [UInt8] = []
        while true {
            let read = await read(1...65536)
            all += read.bytes
            if read.isAtEnd || read.failure != nil { return (all, read.failure) }
        }
    }
}

/// Bytes that differ from place to place.
func pattern(_ count: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
}

/// A resolver that knows one name's addresses.
func resolver(_ addresses: String...) -> NameResolver {
    let addresses = addresses.compactMap { IPAddress($0) }
    return NameResolver { _ in .success(addresses) }
}

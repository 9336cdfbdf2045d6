internal import Glibc

/// The time that the disk currently needs to sync 4 KiB. It may vary from 0.08 ms to 4 ms within minutes on the same
/// machine. Results that depend on syncs are meaningless without it.
struct SyncProbe {
    /// The median in microseconds.
    let median: Double
    /// The 99th percentile in microseconds.
    let slowest: Double

    /// Measures for a quarter of a second: repeatedly appends 4 KiB to a temporary file in the directory and syncs it.
    init(in directory: String) {
        let path = "\(directory)/probe"
        let file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { fatalError("cannot write \(path)") }
        defer {
            close(file)
            unlink(path)
        }
        let end = now() + 250_000_000
        var times: [Double] = []
        while now() < end || times.count < 10 { times.append(Self.append(to: file)) }
        times.sort()
        median = times[times.count / 2]
        slowest = times[times.count * 99 / 100]
    }

    private static func append(to file: CInt) -> Double {
        let page = [UInt8](repeating: 7, count: 4096)
        let start = now()
        guard write(file, page, page.count) == page.count, fdatasync(file) == 0 else {
            fatalError("cannot write and sync 4 KiB")
        }
        return Double(now() - start) / 1e3
    }

    var text: String { "p50 \(number(median)) µs, p99 \(number(slowest)) µs" }

    var json: String { #"{"p50": \#(median), "p99": \#(slowest)}"# }
}

internal import Glibc

/// How long the disk takes right now to keep 4 KiB: the same machine may need 0.08 ms in one minute and 4 ms in the
/// next, and what is measured meanwhile means little without knowing it.
struct SyncProbe {
    /// Microseconds.
    let median: Double
    let slowest: Double

    /// Appends and syncs for a quarter of a second, in a file that is gone afterwards.
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
            fatalError("the disk does not take 4 KiB")
        }
        return Double(now() - start) / 1e3
    }

    var text: String { "\(number(median)) µs, one in a hundred \(number(slowest)) µs" }

    var json: String { #"{"p50": \#(median), "p99": \#(slowest)}"# }
}

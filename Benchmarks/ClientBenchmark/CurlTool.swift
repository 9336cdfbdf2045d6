internal import BenchmarkSupport
internal import CNetwatchFloors
internal import Glibc

/// Measures the command line tool `curl`.
///
/// Arguments for small bodies: `requests`, the number of concurrent requests, the number of seconds, the URL.
///
/// Arguments for a large body: its number of bytes, followed by the arguments of curl.
enum CurlTool: Measurement {
    static let name = "curl"

    static func run(_ arguments: [String]) async throws {
        if arguments[0] == "requests" {
            requests(Int(arguments[1])!, Double(arguments[2])!, arguments[3])
        } else {
            let (seconds, cpu) = curl(arguments.dropFirst().joined(separator: " "))
            printFigure("throughput", Double(arguments[0])! / 1_048_576 / seconds)
            printFigure("cpu", cpu * 1e3)
            // Removes the file, so that every download creates a new file, like the first one.
            if let output = arguments.last, output != "/dev/null" { unlink(output) }
        }
    }

    private static func requests(_ clients: Int, _ seconds: Double, _ url: String) {
        let options = "--parallel --parallel-immediate --parallel-max \(clients) --output /dev/null"
        let request = { (count: Int) in curl("\(options) '\(url)?[1-\(count)]'") }
        // curl cannot send requests until a deadline, so the number of requests is calculated from a sample.
        let sample = 50 * clients
        let count = Int(Double(sample) / request(sample).seconds * seconds)
        let (taken, cpu) = request(count)
        printFigure("rate", Double(count) / taken)
        printFigure("cpu", cpu / Double(count) * 1e6)
    }

    /// Runs curl and waits for its end. Returns the elapsed time and the CPU time in seconds.
    private static func curl(_ arguments: String) -> (seconds: Double, cpu: Double) {
        let (start, cpu) = (now(), childrenSeconds())
        // With --parallel, curl prints its progress to standard error even with --silent.
        shell("exec curl --silent --fail --noproxy '*' \(arguments) 2>/dev/null")
        return (Double(now() - start) / 1e9, childrenSeconds() - cpu)
    }

    /// Returns the CPU time in seconds of all child processes that have ended.
    private static func childrenSeconds() -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_CHILDREN.rawValue), &usage)
        return usage.ru_utime.seconds + usage.ru_stime.seconds
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1e6 }
}

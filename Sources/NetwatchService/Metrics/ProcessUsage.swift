internal import Foundation
internal import Glibc

/// What this process uses. A value that cannot be read is `nil`.
struct ProcessUsage {
    let started: Date
    let cpuSeconds: Double?
    let residentBytes: Double?
    let openDescriptors: Double?
    let maximumDescriptors: Double?

    /// Reads the current values (`proc(5)`, `getrusage(2)`).
    init(started: Date) {
        self.started = started
        var usage = rusage()
        cpuSeconds =
            getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage) == 0
            ? usage.ru_utime.seconds + usage.ru_stime.seconds : nil
        let pages = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8))?.split(separator: " ")
        residentBytes = pages?.dropFirst().first.flatMap { Double($0) }.map {
            $0 * Double(sysconf(CInt(_SC_PAGESIZE)))
        }
        openDescriptors = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map {
            // One of them is the directory itself.
            Double($0.count - 1)
        }
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        maximumDescriptors = isKnown ? Double(limit.rlim_cur) : nil
    }
}

extension timeval {
    fileprivate var seconds: Double { Double(tv_sec) + Double(tv_usec) / 1_000_000 }
}

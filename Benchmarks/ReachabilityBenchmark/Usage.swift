internal import BenchmarkSupport
internal import Glibc

/// What a thread has used of the machine, from `/proc`.
struct Usage {
    /// How often it went to sleep and was woken (`voluntary_ctxt_switches`).
    var wakeUps: Int
    /// Seconds.
    var cpu: Double

    static func - (after: Usage, before: Usage) -> Usage {
        Usage(wakeUps: after.wakeUps - before.wakeUps, cpu: after.cpu - before.cpu)
    }

    /// The usage of a thread of this process, or of another's first thread.
    ///
    /// - Parameter directory: `/proc/PID` or `/proc/PID/task/TID`.
    init(of directory: String) {
        wakeUps = field("voluntary_ctxt_switches:", of: "\(directory)/status")
        // The first number is the time on a processor, in nanoseconds (Documentation/scheduler/sched-stats).
        let statistics = contents("\(directory)/schedstat").split(separator: " ")
        cpu = statistics.first.flatMap { Double($0) }.map { $0 / 1e9 } ?? .nan
    }

    private init(wakeUps: Int, cpu: Double) {
        self.wakeUps = wakeUps
        self.cpu = cpu
    }

    func print(as name: String) {
        printFigure("\(name).wakeUps", Double(wakeUps))
        printFigure("\(name).cpu", cpu * 1e3)
    }
}

/// Where `/proc` tells of the monitor's thread.
func monitorThread() -> String { directory(ofThread: "nw-path") }

/// Where `/proc` tells of a thread of this process.
func directory(ofThread thread: String) -> String {
    let tasks = "/proc/self/task"
    guard let directory = opendir(tasks) else { fatalError("no \(tasks)") }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if contents("\(tasks)/\(name)/comm") == "\(thread)\n" { return "\(tasks)/\(name)" }
    }
    fatalError("no thread is called \(thread)")
}

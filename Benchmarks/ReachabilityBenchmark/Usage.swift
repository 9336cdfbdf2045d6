internal import BenchmarkSupport
internal import Glibc

/// The resources that a thread has used, from `/proc`.
struct Usage {
    /// The number of times that the thread slept and was woken (`voluntary_ctxt_switches`).
    var wakeUps: Int
    /// The CPU time in seconds.
    var cpu: Double

    static func - (after: Usage, before: Usage) -> Usage {
        Usage(wakeUps: after.wakeUps - before.wakeUps, cpu: after.cpu - before.cpu)
    }

    /// Reads the usage of a thread of this process, or of the main thread of another process.
    ///
    /// - Parameter directory: `/proc/PID` or `/proc/PID/task/TID`.
    init(of directory: String) {
        wakeUps = field("voluntary_ctxt_switches:", of: "\(directory)/status")
        // The first number is the CPU time in nanoseconds (Documentation/scheduler/sched-stats).
        let statistics = contents("\(directory)/schedstat").split(separator: " ")
        cpu = statistics.first.flatMap { Double($0) }.map { $0 / 1e9 } ?? .nan
    }

    private init(wakeUps: Int, cpu: Double) {
        self.wakeUps = wakeUps
        self.cpu = cpu
    }

    /// Prints the figures `NAME.wakeUps` and `NAME.cpu`, in milliseconds.
    func print(as name: String) {
        printFigure("\(name).wakeUps", Double(wakeUps))
        printFigure("\(name).cpu", cpu * 1e3)
    }
}

/// Returns the directory of the monitor's thread in `/proc`.
func monitorThread() -> String { directory(ofThread: "nw-path") }

/// Returns the directory in `/proc` of the thread of this process that has the given name.
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
    fatalError("this process has no thread with the name `\(thread)`")
}

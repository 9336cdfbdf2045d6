internal import CNetwatchFloors
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
func monitorThread() -> String {
    let tasks = "/proc/self/task"
    guard let directory = opendir(tasks) else { fatalError("no \(tasks)") }
    defer { closedir(directory) }
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
        if contents("\(tasks)/\(name)/comm") == "nw-path\n" { return "\(tasks)/\(name)" }
    }
    fatalError("no thread of the monitor")
}

/// What this process holds in memory, in bytes (`VmRSS`).
func residentMemory() -> Double {
    Double(field("VmRSS:", of: "/proc/self/status")) * 1024
}

/// The number behind a name in a file of `/proc`.
private func field(_ name: String, of path: String) -> Int {
    for line in contents(path).split(separator: "\n") where line.hasPrefix(name) {
        if let number = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).dropFirst().first {
            return Int(number) ?? 0
        }
    }
    fatalError("no \(name) in \(path)")
}

private func contents(_ path: String) -> String {
    guard let file = fopen(path, "re") else { return "" }
    defer { fclose(file) }
    return contents(file)
}

/// What a shell command prints, without the last line break.
func contents(ofCommand command: String) -> String {
    guard let file = popen(command, "re") else { fatalError("failed: \(command)") }
    let text = contents(file)
    guard pclose(file) == 0 else { fatalError("failed: \(command)") }
    return String(text.dropLast())
}

private func contents(_ file: UnsafeMutablePointer<FILE>) -> String {
    var bytes = [UInt8](repeating: 0, count: 8192)
    var text: [UInt8] = []
    while case let count = fread(&bytes, 1, bytes.count, file), count > 0 { text += bytes[..<count] }
    return String(decoding: text, as: UTF8.self)
}

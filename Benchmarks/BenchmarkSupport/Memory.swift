/// Returns the resident memory of this process in bytes (`VmRSS`).
package func residentMemory() -> Double {
    Double(field("VmRSS:", of: "/proc/self/status")) * 1024
}

/// Returns the peak resident memory of this process in bytes (`VmHWM`).
package func peakMemory() -> Double {
    Double(field("VmHWM:", of: "/proc/self/status")) * 1024
}

/// Returns the number after a name in a file of `/proc`. Terminates the process if the file does not have the name.
package func field(_ name: String, of path: String) -> Int {
    for line in contents(path).split(separator: "\n") where line.hasPrefix(name) {
        if let number = line.split(whereSeparator: { $0 == "\t" || $0 == " " }).dropFirst().first {
            return Int(number) ?? 0
        }
    }
    fatalError("no \(name) in \(path)")
}

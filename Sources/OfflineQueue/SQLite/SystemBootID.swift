internal import Foundation

/// The identity of the boot to which readings of the boot clock belong.
package enum SystemBootID {
    /// The environment variable from which the id is read if `/proc` hides the kernel's. The systemd unit sets it to
    /// `%b`, because `ProcSubset=pid` hides the file.
    static let variable = "NETWATCH_BOOT_ID"

    /// The id of this boot; `nil` if it is not known.
    static let current = read()

    /// A note for the log if the id of this boot is not known.
    package static var note: String? {
        guard current == nil else { return nil }
        return "the id of this boot cannot be read from /proc/sys/kernel/random/boot_id or from the variable "
            + "\(variable), so each start counts as a reboot, after which times to live are measured by the wall clock; "
            + "add `Environment=\(variable)=%b` to the unit"
    }

    /// Returns the id of this boot; `nil` if it is not known.
    ///
    /// - Parameter proc: The directory that stands for `/proc`, for tests.
    static func read(
        proc: String = "/proc",
        environment: [String: String] = ProcessInfo.processInfo.environment
    ) -> String? {
        let kernel = contents("\(proc)/sys/kernel/random/boot_id") ?? environment[variable] ?? ""
        // random(4) writes a UUID with hyphens, and systemd.unit(5) the same 32 digits without.
        let id = kernel.filter(\.isHexDigit).lowercased()
        guard id.count == 32 else { return nil }
        return bootClockOffset(proc).map { "\(id) \($0)" } ?? id
    }

    /// Returns the offset of the boot clock in the time namespace of this process, as in `timens_offsets` of
    /// time_namespaces(7); `nil` if it is zero, or the kernel has no time namespaces. Readings in two namespaces can be
    /// compared only if their offsets are equal.
    private static func bootClockOffset(_ proc: String) -> String? {
        let lines = (contents("\(proc)/self/timens_offsets") ?? "").split(separator: "\n")
        let fields =
            lines.map { $0.split(separator: " ") }.first { $0.first == "boottime" }?.dropFirst() ?? []
        return fields.allSatisfy { $0 == "0" } ? nil : fields.joined(separator: ".")
    }

    private static func contents(_ path: String) -> String? {
        try? String(contentsOfFile: path, encoding: .utf8)
    }
}

internal import Glibc

/// The identity of the boot to which readings of the boot clock belong, and during which the kernel keeps what was
/// written to files.
package enum BootID {
    /// The environment variable from which the id is read if `/proc` hides the kernel's. The systemd unit sets it to
    /// `%b`, because `ProcSubset=pid` hides the file.
    package static let variable = "NETWATCH_BOOT_ID"

    /// The id of this boot; `nil` if it is not known.
    package static let current = read(given: getenv(variable).map { String(cString: $0) })

    /// Returns the id of this boot; `nil` if it is not known.
    ///
    /// - Parameters:
    ///   - proc: The directory that stands for `/proc`, for tests.
    ///   - given: The value of the environment variable; `nil` if it is not set.
    package static func read(proc: String = "/proc", given: String?) -> String? {
        let kernel = contents("\(proc)/sys/kernel/random/boot_id") ?? given ?? ""
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

    /// Returns the beginning of a file, of 1 KiB. The files that are read here have less than 100 bytes.
    private static func contents(_ path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = fread(&bytes, 1, bytes.count, file)
        return count == 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}

internal import Glibc

/// A point in time of `CLOCK_BOOTTIME` (clock_gettime(2)), which also counts while the machine is suspended.
///
/// `ContinuousClock.Instant` is the same time, but holds 128 bits, and its layout is known only at run time, so that
/// each structure with such a member is copied by generic code. This type is one integer, and other modules compare its
/// values without a call.
package struct BootInstant: InstantProtocol {
    /// The time since the start of the machine, in nanoseconds. The range ends after 292 years.
    package let nanoseconds: Int64

    @inlinable package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The current time.
    package static var now: BootInstant {
        var time = timespec()
        // This fails only for an unknown clock (clock_gettime(2)), which would be a bug.
        let result = clock_gettime(CLOCK_BOOTTIME, &time)
        precondition(result == 0, "clock_gettime: \(errnoDescription(errno))")
        return BootInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    /// Returns the time after a duration, rounded down to nanoseconds. Durations that exceed the range lead to its
    /// first or last instant.
    package func advanced(by duration: Duration) -> BootInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        guard overflow else { return BootInstant(nanoseconds: sum) }
        return BootInstant(nanoseconds: duration < .zero ? .min : .max)
    }

    package func duration(to other: BootInstant) -> Duration {
        let (difference, overflow) = other.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return .nanoseconds(overflow ? (other < self ? .min : .max) : difference)
    }

    @inlinable package static func < (first: BootInstant, second: BootInstant) -> Bool {
        first.nanoseconds < second.nanoseconds
    }

    package static func + (instant: BootInstant, duration: Duration) -> BootInstant {
        instant.advanced(by: duration)
    }

    package static func - (instant: BootInstant, duration: Duration) -> BootInstant {
        instant.advanced(by: .zero - duration)
    }

    package static func - (end: BootInstant, start: BootInstant) -> Duration {
        start.duration(to: end)
    }
}

extension Duration {
    /// The duration in nanoseconds, rounded down. Durations of more than 292 years are limited to that.
    fileprivate var wholeNanoseconds: Int64 {
        let (quotient, remainder) = attoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
        return Int64(clamping: remainder < 0 ? quotient - 1 : quotient)
    }
}

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

extension Duration {
    /// Returns this duration doubled `times` times, but at most `limit`. Used for delays that grow with each failure.
    ///
    /// A negative number of times has the effect of 0. Durations and limits of up to `Int64.max` seconds do not
    /// overflow.
    package func doubled(times: Int, upTo limit: Duration) -> Duration {
        var delay = self
        for _ in 0..<max(times, 0) {
            guard delay > .zero, delay < limit else { break }
            delay += delay
        }
        return min(delay, limit)
    }
}

internal import Foundation

/// The boot that the machine is in.
enum BootID {
    /// The kernel's random number of this boot; empty where there is no `/proc`, and then no boot is the same
    /// as another.
    static let current: String = {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }()
}

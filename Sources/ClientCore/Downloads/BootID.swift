internal import Foundation

/// The identity of the machine's current boot.
enum BootID {
    /// The kernel's random identifier of this boot. Empty without `/proc`; an empty identifier matches no boot.
    static let current: String = {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }()
}

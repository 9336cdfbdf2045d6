internal import Foundation

/// The identity of the machine's current boot.
enum BootID {
    /// The random identifier that the kernel creates at boot. Empty if `/proc` is not available; an empty identifier
    /// matches no boot.
    static let current: String = {
        let text = try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
        return text?.trimmingCharacters(in: .whitespacesAndNewlines) ?? ""
    }()
}

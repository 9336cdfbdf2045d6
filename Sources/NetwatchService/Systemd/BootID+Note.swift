internal import NetwatchEventLoop

extension BootID {
    /// A note for the log if the id of this boot is not known.
    static var note: String? {
        guard current == nil else { return nil }
        return "the id of this boot cannot be read from /proc/sys/kernel/random/boot_id or from the variable "
            + "\(variable), so each start counts as a reboot, after which ages are measured by the wall clock; "
            + "add `Environment=\(variable)=%b` to the unit"
    }
}

/// An entry in the native protocol of the journal (https://systemd.io/JOURNAL_NATIVE_PROTOCOL).
struct JournalEntry: Hashable, Sendable {
    private(set) var bytes: [UInt8] = []

    /// Adds a field.
    ///
    /// - Parameters:
    ///   - name: Capital letters, digits and underscores; not an underscore first.
    ///   - value: Any text. With a line break, it is sent with its length instead of an end.
    mutating func add(_ name: String, _ value: String) {
        let value = Array(value.utf8), newline = UInt8(ascii: "\n")
        bytes += name.utf8
        if value.contains(newline) {
            bytes.append(newline)
            bytes += withUnsafeBytes(of: UInt64(value.count).littleEndian, Array.init)
        } else {
            bytes.append(UInt8(ascii: "="))
        }
        bytes += value
        bytes.append(newline)
    }
}

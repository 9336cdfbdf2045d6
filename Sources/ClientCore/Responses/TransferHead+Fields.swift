internal import NetwatchTransport

extension TransferHead {
    /// The value of a field that may come once only; `nil` when there is none, or when several contradict
    /// each other.
    func singleField(_ name: String) -> String? {
        let values = Set(fields.values(of: name))
        return values.count == 1 ? values.first : nil
    }

    /// Whether the body is another one than the file, compressed for example: its offsets are not the file's.
    var isEncoded: Bool {
        fields.values(of: "content-encoding").contains { $0.lowercased() != "identity" }
    }
}

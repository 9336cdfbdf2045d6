internal import NetwatchTransport

extension TransferHead {
    /// Returns the value of a field that must occur only once; `nil` if it is missing or has different values.
    func singleField(_ name: String) -> String? {
        let values = Set(fields.values(of: name))
        return values.count == 1 ? values.first : nil
    }

    /// Whether the body is encoded, for example compressed. Byte offsets in an encoded body are not offsets in the
    /// file.
    var isEncoded: Bool {
        fields.values(of: "content-encoding").contains { $0.lowercased() != "identity" }
    }
}

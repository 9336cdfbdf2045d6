internal import ClientCore
internal import NetworkReachability

/// Strings of refused values, which messages quote. Such a string may be a URL with a password in any form.
enum RefusedText {
    /// Returns a string with `REDACTED` in place of the secrets that it has as a URL.
    ///
    /// - Parameter isURL: Whether the key expects a URL. Text before an `@` is then always a secret. Default `false`: a
    ///   name such as `ops@example.com` is shown, unless there is a colon before its `@`.
    static func withoutSecrets(_ text: String, isURL: Bool = false) -> String {
        let bytes = text.utf8
        let name = bytes.lastIndex(of: UInt8(ascii: "@")).map { bytes[..<$0] }
        let mayBeURL = isURL || name?.contains(UInt8(ascii: ":")) == true
        return mayBeURL ? RedactedURL.text(ofUnchecked: text) : RedactedURL.text(of: text)
    }
}

extension TOMLNode.Value {
    /// Returns the value as TOML for a message that refuses it.
    ///
    /// - Parameter isURL: Whether the key expects a URL. Default `false`.
    func refusedText(isURL: Bool = false) -> String {
        text { RefusedText.withoutSecrets($0, isURL: isURL) }
    }

    /// How the first international name among the hosts of the value must be written; `nil` without such a name. Hosts are
    /// the keys of a table, and in an array the texts before `=`.
    var adviceOnHosts: String? {
        let names =
            switch self {
            case .table(let entries): entries.map(\.key)
            case .array(let nodes): nodes.compactMap(\.value.host)
            default: [String]()
            }
        return names.lazy.compactMap(InternationalName.advice).first
    }

    private var host: String? {
        guard case .string(let text) = self else { return nil }
        return text.firstIndex(of: "=").map { String(text[..<$0]) }
    }
}

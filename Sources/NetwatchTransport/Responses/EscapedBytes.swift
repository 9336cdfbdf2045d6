/// Formatting of a peer's bytes for messages. Printable ASCII is unchanged; everything else is escaped.
enum EscapedBytes {
    /// The maximum number of bytes shown.
    static let limit = 64

    /// Returns the first ``limit`` bytes in quotes, such as `"SSH-2.0-OpenSSH_9.2p1\r\n"`. If there are more bytes, `…`
    /// follows.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        let shown = bytes.prefix(limit).map(escaped).joined()
        return "\"\(shown)\"" + (bytes.count > limit ? "…" : "")
    }

    private static func escaped(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "\r"): return "\\r"
        case UInt8(ascii: "\n"): return "\\n"
        case UInt8(ascii: "\t"): return "\\t"
        case UInt8(ascii: "\""), UInt8(ascii: "\\"): return "\\" + String(UnicodeScalar(byte))
        case 0x20..<0x7f: return String(UnicodeScalar(byte))
        default:
            let digits = String(byte, radix: 16)
            return "\\x" + (byte < 16 ? "0" : "") + digits
        }
    }
}

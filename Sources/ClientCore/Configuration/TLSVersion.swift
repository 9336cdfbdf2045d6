internal import NetwatchTransport

/// The versions of TLS; see ``RequestOptions/minimumTLSVersion``.
public enum TLSVersion: Int, Sendable, Hashable, Comparable {
    /// TLS 1.0 (RFC 2246), which RFC 8996 deprecates.
    case tls10
    /// TLS 1.1 (RFC 4346), which RFC 8996 deprecates.
    case tls11
    /// TLS 1.2 (RFC 5246).
    case tls12
    /// TLS 1.3 (RFC 8446).
    case tls13

    /// Returns whether the first version is older.
    public static func < (one: TLSVersion, other: TLSVersion) -> Bool { one.rawValue < other.rawValue }

    var transfer: TransferTrust.TLSVersion {
        switch self {
        case .tls10: .tls10
        case .tls11: .tls11
        case .tls12: .tls12
        case .tls13: .tls13
        }
    }
}

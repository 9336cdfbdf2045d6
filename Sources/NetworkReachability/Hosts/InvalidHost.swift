/// A text that names no host, and why.
public struct InvalidHost: Error, Hashable, Sendable {
    /// What is wrong with it. New reasons may be added.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The reason as it stands in machine-readable output.
        public let rawValue: String

        /// Makes a reason of its machine-readable form.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// The text.
    public let text: String
    /// What is wrong with it.
    public let reason: Reason

    init(_ text: String, _ reason: Reason) {
        self.text = text
        self.reason = reason
    }
}

extension InvalidHost.Reason {
    /// There is nothing in it.
    public static let empty = Self(rawValue: "empty")
    /// It is a URL.
    public static let scheme = Self(rawValue: "scheme")
    /// It goes on behind the host.
    public static let path = Self(rawValue: "path")
    /// It has a user before the host.
    public static let user = Self(rawValue: "user")
    /// It ends with a port.
    public static let port = Self(rawValue: "port")
    /// It is an address as URLs write it.
    public static let brackets = Self(rawValue: "brackets")
    /// It has a zone that is no interface's name or index.
    public static let unknownZone = Self(rawValue: "unknownZone")
    /// It has a zone, but is no IPv6 address.
    public static let zone = Self(rawValue: "zone")
    /// It is longer than any name may be.
    public static let tooLong = Self(rawValue: "tooLong")
    /// A label of it is too long or empty.
    public static let labelLength = Self(rawValue: "labelLength")
    /// A label of it begins or ends with a hyphen.
    public static let hyphen = Self(rawValue: "hyphen")
    /// It has characters that no name has.
    public static let character = Self(rawValue: "character")
    /// It looks like an address, but is none.
    public static let mistypedAddress = Self(rawValue: "mistypedAddress")
    /// It is an address that stands for none or several hosts.
    public static let notOneHost = Self(rawValue: "notOneHost")
    /// It is a link-local address of no particular link.
    public static let noZone = Self(rawValue: "noZone")
}

extension InvalidHost.Reason: CustomStringConvertible {
    /// The reason in words for a person.
    public var description: String {
        switch self {
        case .empty: "it is empty"
        case .scheme: "it is a URL; the host alone is wanted"
        case .path: "it has a path, a query or a prefix length"
        case .user: "it has a user name"
        case .port: "it has a port"
        case .brackets: "it has brackets"
        case .unknownZone: "its zone is no interface of this machine"
        case .zone: "only an IPv6 address has a zone"
        case .tooLong: "a name has at most 253 bytes"
        case .labelLength: "each label of a name has 1 to 63 bytes"
        case .hyphen: "a label begins or ends with a hyphen"
        case .character:
            "a name has letters, digits, hyphens and dots only; international names are written as `xn--…`"
        case .mistypedAddress: "it looks like an address, but is none"
        case .notOneHost: "it is not the address of one host"
        case .noZone: "it is link-local and needs its zone, as in `fe80::1%eth0`"
        default: rawValue
        }
    }
}

extension InvalidHost: CustomStringConvertible {
    /// A sentence for a person: the text between backticks, and what is wrong with it.
    public var description: String {
        "`\(text)` is not a host: \(reason)"
    }
}

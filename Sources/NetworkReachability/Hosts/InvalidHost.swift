/// The error for text that is not a valid host.
public struct InvalidHost: Error, Hashable, Sendable {
    /// Why the text is not a valid host. New reasons may be added.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The reason in machine-readable output.
        public let rawValue: String

        /// Creates a reason from its machine-readable form.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// The rejected text.
    public let text: String
    /// Why the text was rejected.
    public let reason: Reason

    init(_ text: String, _ reason: Reason) {
        self.text = text
        self.reason = reason
    }
}

extension InvalidHost.Reason {
    /// The text is empty.
    public static let empty = Self(rawValue: "empty")
    /// The text is a URL.
    public static let scheme = Self(rawValue: "scheme")
    /// The text has a path, a query or a prefix length after the host.
    public static let path = Self(rawValue: "path")
    /// The text has a user name before the host.
    public static let user = Self(rawValue: "user")
    /// The text ends with a port.
    public static let port = Self(rawValue: "port")
    /// The text is an address in brackets, as in URLs.
    public static let brackets = Self(rawValue: "brackets")
    /// The zone is neither the name nor the index of an interface.
    public static let unknownZone = Self(rawValue: "unknownZone")
    /// The text has a zone but is not an IPv6 address.
    public static let zone = Self(rawValue: "zone")
    /// The name is longer than 253 bytes.
    public static let tooLong = Self(rawValue: "tooLong")
    /// A label is empty or longer than 63 bytes.
    public static let labelLength = Self(rawValue: "labelLength")
    /// A label begins or ends with a hyphen.
    public static let hyphen = Self(rawValue: "hyphen")
    /// The name contains a character that is not allowed in host names.
    public static let character = Self(rawValue: "character")
    /// The text looks like an address but is not a valid one.
    public static let mistypedAddress = Self(rawValue: "mistypedAddress")
    /// The address does not identify a single host: it is unspecified, multicast or broadcast.
    public static let notOneHost = Self(rawValue: "notOneHost")
    /// The address is link-local and has no zone.
    public static let noZone = Self(rawValue: "noZone")
}

extension InvalidHost.Reason: CustomStringConvertible {
    /// A human-readable description of the reason.
    public var description: String {
        switch self {
        case .empty: "it is empty"
        case .scheme: "it is a URL; give only the host"
        case .path: "it contains a path, a query or a prefix length"
        case .user: "it contains a user name"
        case .port: "it contains a port"
        case .brackets: "it contains brackets"
        case .unknownZone: "this machine has no interface with the name or index of its zone"
        case .zone: "only an IPv6 address can have a zone"
        case .tooLong: "a name can have at most 253 bytes"
        case .labelLength: "each label of a name must have 1 to 63 bytes"
        case .hyphen: "a label must not begin or end with a hyphen"
        case .character:
            "a name can contain only letters, digits, hyphens, underscores and dots; "
                + "write an international name as `xn--…`"
        case .mistypedAddress: "it looks like an address but is not valid"
        case .notOneHost: "it is not the address of a single host"
        case .noZone: "a link-local address needs a zone, as in `fe80::1%eth0`"
        default: rawValue
        }
    }
}

extension InvalidHost: CustomStringConvertible {
    /// A human-readable message: the text in backticks and the reason.
    public var description: String {
        "`\(text)` is not a valid host: \(reason)"
    }
}

/// The error that ``NetworkHost/init(validating:)`` throws for text that is not a valid host.
public struct InvalidHost: Error, Hashable, Sendable {
    /// The reason why a text is not a valid host. Later versions may add reasons.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The name of the reason in machine-readable output, such as `labelLength`.
        public let rawValue: String

        /// Creates a reason from its name in machine-readable output.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }
    }

    /// The rejected text.
    public let text: String
    /// The reason why the text was rejected.
    public let reason: Reason

    init(_ text: String, _ reason: Reason) {
        self.text = text
        self.reason = reason
    }
}

extension InvalidHost.Reason {
    /// The text is empty.
    public static let empty = Self(rawValue: "empty")
    /// The text is a URL: it contains `://`.
    public static let scheme = Self(rawValue: "scheme")
    /// The text has a path, a query, a fragment or a prefix length after the host: it contains `/`, `?` or `#`.
    public static let path = Self(rawValue: "path")
    /// The text has a user name before the host: it contains `@`.
    public static let user = Self(rawValue: "user")
    /// The text has a port after the host: it contains one colon.
    public static let port = Self(rawValue: "port")
    /// The text contains brackets, as around the IPv6 address in a URL.
    public static let brackets = Self(rawValue: "brackets")
    /// The zone of the IPv6 address is neither the name nor the index of an interface of this machine.
    public static let unknownZone = Self(rawValue: "unknownZone")
    /// The text has a zone (after `%`), but is not an IPv6 address.
    public static let zone = Self(rawValue: "zone")
    /// The name is longer than 253 bytes.
    public static let tooLong = Self(rawValue: "tooLong")
    /// A label (a part of the name between dots) is empty or longer than 63 bytes.
    public static let labelLength = Self(rawValue: "labelLength")
    /// A label of the name begins or ends with a hyphen.
    public static let hyphen = Self(rawValue: "hyphen")
    /// The name contains a character that is not allowed in host names.
    public static let character = Self(rawValue: "character")
    /// The text looks like an address but is not valid: its last label is a number, or it has several colons.
    public static let mistypedAddress = Self(rawValue: "mistypedAddress")
    /// The address does not identify a single host: it is unspecified, multicast or broadcast.
    public static let notOneHost = Self(rawValue: "notOneHost")
    /// The text is a link-local IPv6 address without a zone. The zone is needed because it selects the link.
    public static let noZone = Self(rawValue: "noZone")
}

extension InvalidHost.Reason: CustomStringConvertible {
    /// A human-readable description of the reason.
    public var description: String {
        switch self {
        case .empty: "it is empty"
        case .scheme: "it is a URL; give only the host"
        case .path: "it contains a path, a query or a prefix length; give only the host"
        case .user: "it contains a user name; give only the host"
        case .port: "it contains a port; give only the host"
        case .brackets: "it contains brackets; give the address without them"
        case .unknownZone: "this machine has no interface with the name or index of its zone"
        case .zone: "only an IPv6 address can have a zone"
        case .tooLong: "a name can have at most 253 bytes"
        case .labelLength: "each label of a name must have 1 to 63 bytes"
        case .hyphen: "a label must not begin or end with a hyphen"
        case .character:
            "a name can contain only letters, digits, hyphens, underscores and dots; "
                + "write an international name as `xn--…`"
        case .mistypedAddress: "it looks like an IP address but is not a valid one"
        case .notOneHost: "an unspecified, multicast or broadcast address is not the address of one host"
        case .noZone: "a link-local address needs a zone, as in `fe80::1%eth0`"
        default: rawValue
        }
    }
}

extension InvalidHost: CustomStringConvertible {
    /// A human-readable message with the rejected text and the reason.
    public var description: String {
        "`\(text)` is not a valid host: \(explanation)"
    }

    /// The reason, with the form `xn--…` of an international name if it is known.
    package var explanation: String {
        guard reason == .character, let advice = InternationalName.advice(for: text) else {
            return "\(reason)"
        }
        return advice
    }
}

/// A text that names no host, and why.
public struct InvalidHost: Error, Hashable, Sendable {
    /// What is wrong with it. New reasons may be added.
    public struct Reason: RawRepresentable, Hashable, Sendable {
        /// The reason in words for a person.
        public let rawValue: String

        /// Makes a reason of its words.
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
    public static let empty = Self(rawValue: "it is empty")
    /// It is a URL.
    public static let scheme = Self(rawValue: "it has a scheme")
    /// It goes on behind the host.
    public static let path = Self(rawValue: "it has a path or a query")
    /// It has a user before the host.
    public static let user = Self(rawValue: "it has a user name")
    /// It ends with a port.
    public static let port = Self(rawValue: "it has a port")
    /// It is an address as URLs write it.
    public static let brackets = Self(rawValue: "it has brackets")
    /// It has a zone that is no interface's name or index.
    public static let unknownZone = Self(rawValue: "its zone is no interface here")
    /// It has a zone, but is no IPv6 address.
    public static let zone = Self(rawValue: "only an IPv6 address has a zone")
    /// It is longer than any name may be.
    public static let tooLong = Self(rawValue: "a name has at most 253 bytes")
    /// A label of it is too long or empty.
    public static let labelLength = Self(rawValue: "each label of a name has 1 to 63 bytes")
    /// A label of it begins or ends with a hyphen.
    public static let hyphen = Self(rawValue: "no label of a name begins or ends with a hyphen")
    /// It has characters that no name has.
    public static let character = Self(
        rawValue: "a name has letters, digits, hyphens and underscores of ASCII only"
    )
    /// Its last label is a number.
    public static let mistypedAddress = Self(rawValue: "it ends with a number but is no IPv4 address")
    /// It is an address that stands for none or several hosts.
    public static let notOneHost = Self(rawValue: "the address is not one host's")
    /// It is a link-local address of no particular link.
    public static let noZone = Self(rawValue: "a link-local address needs a zone (`fe80::1%eth0`)")
}

extension InvalidHost: CustomStringConvertible {
    /// A sentence for a person: the text between backticks, and what is wrong with it.
    public var description: String {
        "`\(text)` is not a host: \(reason.rawValue)"
    }
}

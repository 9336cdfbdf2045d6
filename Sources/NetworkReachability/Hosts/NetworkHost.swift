internal import NetwatchEventLoop

/// A host whose reachability can be watched: a host name or an address literal.
///
/// ```swift
/// do {
///     let host = try NetworkHost(validating: "https://example.com")
///     print(host)
/// } catch {
///     print(error)  // `https://example.com` is not a valid host: it is a URL; give only the host
/// }
/// ```
public struct NetworkHost: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        case address(IPAddress)
        case name(String)
    }

    let kind: Kind

    /// The text from which the host was created, not normalized.
    public let text: String

    /// A human-readable description of the text that is accepted as a host, for error messages and help texts.
    public static let acceptedForms =
        "a host name (`example.com`) or an address (`192.0.2.1`, `2001:db8::1`, `fe80::1%eth0`), "
        + "without scheme, port, path or brackets"

    /// Creates a host from a name or an address literal.
    ///
    /// A name has at most 253 bytes and consists of labels, separated by dots (RFC 1123 §2.1, RFC 1035 §2.3.4). Each
    /// label has 1 to 63 letters, digits, hyphens or underscores, and neither begins nor ends with a hyphen. A
    /// trailing dot is allowed. Internationalised names must be in `xn--` form.
    ///
    /// An IPv4-mapped IPv6 address (`::ffff:192.0.2.1`) is treated as the IPv4 address.
    ///
    /// Everything else is rejected, for example:
    /// - an empty string, a URL, a host with a port;
    /// - a name whose last label is a decimal or `0x` number, because it can only be a mistyped address;
    /// - an address that does not identify one host (multicast, `255.255.255.255`, `0.0.0.0`, `::`);
    /// - a link-local IPv6 address without a zone, because the zone selects the link (RFC 4007 §11);
    /// - an IPv6 address whose zone is not an interface in the network namespace of the process.
    ///
    /// - Throws: ``InvalidHost`` with the reason.
    public init(validating text: String) throws(InvalidHost) {
        self.text = text
        if let address = IPAddress(text)?.unmapped {
            if let reason = address.hostRejection { throw InvalidHost(text, reason) }
            kind = .address(address)
        } else {
            kind = .name(try HostName.normalized(text))
        }
    }

    /// Creates a host from the text, or returns `nil` if ``init(validating:)`` would throw.
    public init?(_ text: String) {
        guard let host = try? NetworkHost(validating: text) else { return nil }
        self = host
    }
}

extension NetworkHost {
    /// The addresses that need no lookup: those of an address, of `localhost`, and of names below `localhost`; `nil` if
    /// the name must be looked up.
    var knownAddresses: [IPAddress]? {
        switch kind {
        case .address(let address): [address]
        case .name(let name): NameResolver.localAddresses(of: name)
        }
    }
}

extension NetworkHost: CustomStringConvertible {
    /// The text from which the host was created.
    public var description: String { text }
}

extension NetworkHost {
    /// Returns whether two hosts have the same address or the same normalized name. For example, `Example.com` equals
    /// `example.com.`.
    public static func == (left: NetworkHost, right: NetworkHost) -> Bool {
        left.kind == right.kind
    }

    /// Hashes the address or the normalized name.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(kind)
    }
}

extension IPAddress {
    /// The IPv4 address in an IPv4-mapped IPv6 address (RFC 4291 §2.5.5.2), because sockets connect to the IPv4
    /// address. For any other address, the address itself.
    fileprivate var unmapped: IPAddress {
        let prefix = [UInt8](repeating: 0, count: 10) + [0xff, 0xff]
        guard family == .ipv6, bytes.starts(with: prefix) else { return self }
        return IPAddress(bytes: bytes.dropFirst(prefix.count)) ?? self
    }

    /// The reason why the address does not identify one host; `nil` if it does.
    ///
    /// Unspecified, multicast and limited broadcast addresses identify no single host. A link-local IPv6 address
    /// without a zone may belong to a different host on each link.
    fileprivate var hostRejection: InvalidHost.Reason? {
        let isMulticast = family == .ipv4 ? bits >> 124 == 0xe : bits >> 120 == 0xff
        let isBroadcast = family == .ipv4 && bits >> 96 == 0xffff_ffff
        if bits == 0 || isMulticast || isBroadcast { return .notOneHost }
        return isLinkLocal && zone == 0 ? .noZone : nil
    }

    /// The address, converted to IPv4 if it is IPv4-mapped; `nil` if it does not identify one host.
    ///
    /// Used for the answers of name servers. For example, some answer `0.0.0.0` for a blocked name.
    var hostAddress: IPAddress? {
        let address = unmapped
        return address.hostRejection == nil ? address : nil
    }
}

/// Validation of host names (RFC 1123 §2.1).
enum HostName {
    /// Validates a name. Returns it in lower case, without a trailing dot.
    static func normalized(_ text: String) throws(InvalidHost) -> String {
        if text.isEmpty { throw InvalidHost(text, .empty) }
        if let reason = rejectionOfForm(text) { throw InvalidHost(text, reason) }
        var name = text.lowercased()
        if name.hasSuffix(".") { name.removeLast() }
        guard name.utf8.count <= 253 else { throw InvalidHost(text, .tooLong) }
        let labels = name.split(separator: ".", omittingEmptySubsequences: false)
        for label in labels {
            if let reason = reasonAgainst(label) { throw InvalidHost(text, reason) }
        }
        guard !isNumber(labels.last!) else { throw InvalidHost(text, .mistypedAddress) }
        return name
    }

    /// Returns the specific reason if the text contains a common mistake, such as a URL or a port; otherwise `nil`.
    private static func rejectionOfForm(_ text: String) -> InvalidHost.Reason? {
        if text.contains("://") { return .scheme }
        if text.contains(where: { "/?#".contains($0) }) { return .path }
        if text.contains("@") { return .user }
        if text.contains(where: { "[]".contains($0) }) { return .brackets }
        if text.contains("%") { return text.contains(":") ? .unknownZone : .zone }
        switch text.count(where: { $0 == ":" }) {
        case 0: return nil
        case 1: return .port
        default: return .mistypedAddress
        }
    }

    /// Whether a label is a decimal or hexadecimal number. If the last label of a name is a number, resolvers read
    /// the name as an address, by the rules of `inet_aton(3)`.
    private static func isNumber(_ label: Substring) -> Bool {
        label.allSatisfy(\.isNumber) || label.hasPrefix("0x") && label.dropFirst(2).allSatisfy(\.isHexDigit)
    }

    private static func reasonAgainst(_ label: Substring) -> InvalidHost.Reason? {
        guard (1...63).contains(label.utf8.count) else { return .labelLength }
        guard label.utf8.allSatisfy(isAllowed) else { return .character }
        return label.first == "-" || label.last == "-" ? .hyphen : nil
    }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        case UInt8(ascii: "-"), UInt8(ascii: "_"): true
        default: false
        }
    }
}

/// Names with letters beyond ASCII, in the form that name servers know (RFC 5891).
package enum InternationalName {
    /// Returns a name with its labels in the form `xn--…`; `nil` if the name is ASCII, or if this form depends on
    /// mappings that are not implemented here, for example of decomposed letters.
    package static func ascii(_ name: String) -> String? {
        guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        let labels = name.lowercased().split(separator: ".", omittingEmptySubsequences: false)
        let encoded = labels.compactMap(encoded)
        guard encoded.count == labels.count else { return nil }
        return encoded.joined(separator: ".")
    }

    /// Returns how a name must be written instead, for messages that refuse it; `nil` if that is not known.
    package static func advice(for name: String) -> String? {
        ascii(name).map { "an international name must be written as `\($0)`" }
    }

    private static func encoded(_ label: Substring) -> String? {
        let scalars = Array(label.unicodeScalars)
        if scalars.allSatisfy(\.isASCII) { return String(label) }
        guard scalars.allSatisfy(isUnmapped), let digits = Punycode.encoded(scalars.map(\.value)),
            digits.utf8.count <= 59
        else { return nil }
        return "xn--\(digits)"
    }

    /// Whether a character stands for itself: a letter, a digit or a mark that no normalization changes.
    private static func isUnmapped(_ scalar: Unicode.Scalar) -> Bool {
        let properties = scalar.properties
        if scalar.isASCII { return properties.isAlphabetic || ("0"..."9").contains(scalar) || scalar == "-" }
        return (properties.isAlphabetic || properties.numericType == .decimal)
            && properties.canonicalCombiningClass == .notReordered && !properties.changesWhenNFKCCaseFolded
    }
}

/// Punycode (RFC 3492), with the names of its §6.
private enum Punycode {
    private static let base: UInt32 = 36
    private static let tMin: UInt32 = 1
    private static let tMax: UInt32 = 26
    private static let skew: UInt32 = 38
    private static let damp: UInt32 = 700

    /// Returns the code of a label; `nil` if the label is longer than a label can be.
    static func encoded(_ input: [UInt32]) -> String? {
        // Longer labels could overflow the numbers.
        guard input.count <= 63 else { return nil }
        var output = input.filter { $0 < 0x80 }.map { Character(Unicode.Scalar(UInt8($0))) }
        let basic = output.count
        if basic > 0 { output.append("-") }
        var (n, delta, bias, handled) = (UInt32(0x80), UInt32(0), UInt32(72), basic)
        while handled < input.count, let next = input.filter({ $0 >= n }).min() {
            delta += (next - n) * UInt32(handled + 1)
            n = next
            for point in input {
                if point < n { delta += 1 }
                guard point == n else { continue }
                output += digits(of: delta, bias)
                bias = adapted(delta, UInt32(handled + 1), isFirst: handled == basic)
                (delta, handled) = (0, handled + 1)
            }
            (delta, n) = (delta + 1, n + 1)
        }
        return String(output)
    }

    /// Returns a delta as a variable-length integer.
    private static func digits(of delta: UInt32, _ bias: UInt32) -> [Character] {
        var (q, k, output) = (delta, base, [Character]())
        while true {
            let t = k <= bias ? tMin : min(k - bias, tMax)
            guard q >= t else { return output + [digit(q)] }
            output.append(digit(t + (q - t) % (base - t)))
            (q, k) = ((q - t) / (base - t), k + base)
        }
    }

    private static func digit(_ value: UInt32) -> Character {
        Character(Unicode.Scalar(UInt8(value < 26 ? value + 97 : value - 26 + 48)))
    }

    private static func adapted(_ delta: UInt32, _ points: UInt32, isFirst: Bool) -> UInt32 {
        var delta = isFirst ? delta / damp : delta / 2
        delta += delta / points
        var k: UInt32 = 0
        while delta > (base - tMin) * tMax / 2 { (delta, k) = (delta / (base - tMin), k + base) }
        return k + (base - tMin + 1) * delta / (delta + skew)
    }
}

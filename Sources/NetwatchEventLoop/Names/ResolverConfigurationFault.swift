internal import Glibc

/// A reason why `resolv.conf(5)` provides no usable name server.
///
/// In this case `getaddrinfo(3)` queries a name server on this machine (127.0.0.1), which usually does not exist. The
/// resulting `EAI_AGAIN` does not show the cause.
package enum ResolverConfigurationFault: Hashable, Sendable, CustomStringConvertible {
    case unreadable(path: String, errno: CInt)
    /// `invalid` is the first value of `nameserver` that is not an address; `nil` if there is none.
    case noNameServer(path: String, invalid: String?)

    package var description: String {
        switch self {
        case .unreadable(let path, let errno): "`\(path)`: \(errnoDescription(errno))"
        case .noNameServer(let path, nil): "`\(path)` contains no name server"
        case .noNameServer(let path, let text?):
            "`\(path)` contains no name server: `\(text)` is not an IPv4 or IPv6 address"
        }
    }

    package static let path = "/etc/resolv.conf"
    /// The maximum length of a value in a message, in bytes.
    private static let longestValue = 100

    /// Reads the file. Returns `nil` if the file names at least one name server.
    package init?(readingFrom path: String = path) {
        do throws(SystemError) {
            let values = try NameServers.values(from: path)
            guard !values.contains(where: NameServers.isAddress) else { return nil }
            self = .noNameServer(path: path, invalid: values.first?.printable(upTo: Self.longestValue))
        } catch {
            self = .unreadable(path: path, errno: error.errno)
        }
    }
}

/// The name servers that `resolv.conf(5)` names.
package enum NameServers {
    /// The maximum number of servers that the C library queries (`MAXNS` of <resolv.h>).
    private static let maximumServers = 3
    /// The maximum number of bytes that are read. The C library reads the whole file, but real files are never this
    /// long.
    private static let maximumFileSize = 64 * 1024

    /// Returns the addresses of the name servers as written in the file. Like the C library, ignores values that are
    /// not addresses, and returns at most three.
    package static func read(
        from path: String = ResolverConfigurationFault.path
    ) throws(SystemError) -> [String] {
        addresses(in: try values(from: path))
    }

    static func addresses(in values: [String]) -> [String] {
        Array(values.filter(isAddress).prefix(maximumServers))
    }

    /// Whether the C library accepts the value: an IPv4 address in any form of inet_aton(3), or an IPv6 address, which
    /// may have a zone.
    static func isAddress(_ value: String) -> Bool {
        var (ipv4, ipv6) = (in_addr(), in6_addr())
        let withoutZone = String(value.prefix { $0 != "%" })
        return inet_aton(value, &ipv4) == 1 || inet_pton(AF_INET6, withoutZone, &ipv6) == 1
    }

    /// Returns the values of `nameserver`.
    static func values(from path: String) throws(SystemError) -> [String] {
        let file = try FileDescriptor.opening(path)
        let descriptor = file.rawValue
        var bytes = [UInt8](repeating: 0, count: maximumFileSize)
        let count = try systemCall("read \(path)") { Glibc.read(descriptor, &bytes, bytes.count) }
        return parse(String(decoding: bytes[..<count], as: UTF8.self))
    }

    static func parse(_ text: String) -> [String] {
        text.split(whereSeparator: \.isNewline).compactMap { line -> String? in
            // The keyword must be at the start of the line (resolv.conf(5)).
            let words = line.split(whereSeparator: \.isWhitespace)
            guard line.hasPrefix("nameserver"), words.count >= 2, words[0] == "nameserver" else { return nil }
            return String(words[1])
        }
    }
}

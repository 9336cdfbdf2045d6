internal import Glibc

extension NameResolver {
    /// The error of a failed lookup.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// The error code of `getaddrinfo(3)`, such as `EAI_NONAME` or `EAI_AGAIN`.
        package let code: CInt
        /// The `errno(3)` if the code is `EAI_SYSTEM`; 0 with other codes.
        package let errno: CInt
        /// A fault in the machine's resolver configuration that may be the cause; `nil` if none was found.
        package let configurationFault: ResolverConfigurationFault?

        package init(
            code: CInt,
            errno: CInt = 0,
            configurationFault: ResolverConfigurationFault? = nil
        ) {
            self.code = code
            self.errno = errno
            self.configurationFault = configurationFault
        }

        package var description: String {
            let words = code == EAI_SYSTEM ? errnoDescription(errno) : String(cString: gai_strerror(code))
            return configurationFault.map { "\(words) (\($0))" } ?? words
        }
    }

    package typealias Outcome = Result<[IPAddress], Failure>

    /// The urgency of a lookup.
    package enum Urgency: Sendable {
        /// The caller needs the addresses to connect. The answer may come from the cache.
        case needed
        /// The caller checks whether the addresses have changed. The answer never comes from the cache.
        case refresh
    }

    /// The identity of a lookup that was started, for ``NameResolver/abandon(_:)``.
    package struct Lookup: Hashable, Sendable {
        let caller: ResolverCore.CallerID
    }
}

extension NameResolver.Failure {
    /// Whether name servers answered that the name does not exist or has no addresses. After such an answer, stale
    /// addresses are no longer used (RFC 8767 §4).
    package var isAuthoritative: Bool {
        code == EAI_NONAME || code == Self.noData
    }

    /// Whether the lookup failed because this process was short of memory, descriptors or threads. The name servers are
    /// not the cause.
    package var isOwnShortage: Bool {
        code == EAI_MEMORY || code == EAI_SYSTEM && SystemError.shortages.contains(errno)
    }

    /// `EAI_NODATA` of <netdb.h>, which means that the name exists but has no address. It is a GNU extension that Swift
    /// does not import.
    private static var noData: CInt { -5 }
}

extension NameResolver {
    /// Looks up a name with `getaddrinfo(3)`, for stream sockets of both families. Blocks until the lookup has ended.
    package static func getAddresses(of name: String) -> Outcome {
        var hints = addrinfo()
        hints.ai_family = AF_UNSPEC
        hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        errno = 0
        let code = getaddrinfo(name, nil, &hints, &list)
        let error = errno
        defer { if let list { freeaddrinfo(list) } }
        guard code == 0 else { return .failure(failure(code, errno: error)) }
        let addresses = sequence(first: list, next: { $0?.pointee.ai_next })
            .prefix { $0 != nil }
            .compactMap { IPAddress(socketAddress: $0!.pointee.ai_addr) }
        return addresses.isEmpty ? .failure(Failure(code: EAI_NONAME)) : .success(addresses)
    }

    /// Returns the failure for an error code. Detects a shortage of descriptors: the C library then cannot open its
    /// files and sockets, and reports `EAI_AGAIN` or `EAI_NONAME`. Only `errno` shows the cause.
    private static func failure(_ code: CInt, errno: CInt) -> Failure {
        if code == EAI_SYSTEM || shortages.contains(errno) { return Failure(code: EAI_SYSTEM, errno: errno) }
        let fault = code == EAI_AGAIN ? ResolverConfigurationFault() : nil
        return Failure(code: code, configurationFault: fault)
    }

    private static let shortages: Set<CInt> = [EMFILE, ENFILE, ENOBUFS, ENOMEM]
}

extension NameResolver {
    /// Returns the addresses of a name that needs no lookup: an IP address, `localhost`, or a name below `localhost`.
    /// Returns `nil` for all other names.
    ///
    /// Name servers must not be queried for `localhost` (RFC 6761 §6.3).
    package static func localAddresses(of name: String) -> [IPAddress]? {
        if let literal = IPAddress(name) { return [literal] }
        return isLocalhost(name) ? loopback : nil
    }

    private static let loopback = [IPAddress("::1")!, IPAddress("127.0.0.1")!]

    /// Returns whether the name is `localhost` or below it, so that it refers to this machine (RFC 6761 §6.3).
    package static func isLocalhost(_ name: String) -> Bool {
        let labels = name.hasSuffix(".") ? name.dropLast() : name[...]
        return labels.split(separator: ".", omittingEmptySubsequences: false).last?.lowercased()
            == "localhost"
    }
}

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

/// The `stat(2)` properties of some files. If they differ from earlier ones, a file was replaced or written.
///
/// The resolver reads them at each query, which takes less than 5 µs for four files. So a process without a monitor
/// needs no thread that watches the files.
package struct FileFingerprints: Equatable, Sendable {
    /// The files that configure name resolution: those of `resolv.conf(5)`, `hosts(5)`, `nsswitch.conf(5)` and
    /// `gai.conf(5)`.
    package static let resolverPaths = [
        "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf",
    ]

    private struct Fingerprint: Equatable {
        let device: UInt
        let inode: UInt
        let size: Int
        let seconds: Int
        let nanoseconds: Int
    }

    private let fingerprints: [Fingerprint?]

    init(of paths: [String]) {
        fingerprints = paths.map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return nil }
            return Fingerprint(
                device: UInt(status.st_dev),
                inode: UInt(status.st_ino),
                size: Int(status.st_size),
                seconds: status.st_mtim.tv_sec,
                nanoseconds: status.st_mtim.tv_nsec
            )
        }
    }
}

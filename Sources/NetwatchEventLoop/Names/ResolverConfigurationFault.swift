internal import Glibc

/// A reason why `resolv.conf(5)` provides no usable name server.
///
/// In this case `getaddrinfo(3)` queries a name server on this machine (127.0.0.1), which usually does not exist. The
/// resulting `EAI_AGAIN` does not show the cause.
package enum ResolverConfigurationFault: Hashable, Sendable, CustomStringConvertible {
    case unreadable(path: String, errno: CInt)
    case noNameServer(path: String)

    package var description: String {
        switch self {
        case .unreadable(let path, let errno): "`\(path)`: \(errnoDescription(errno))"
        case .noNameServer(let path): "`\(path)` contains no name server"
        }
    }

    package static let path = "/etc/resolv.conf"

    /// Reads the file. Returns `nil` if the file names at least one name server.
    package init?(readingFrom path: String = path) {
        do throws(SystemError) {
            guard try NameServers.read(from: path).isEmpty else { return nil }
            self = .noNameServer(path: path)
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

    /// Returns the addresses of the name servers as written in the file. Returns at most three, like the C library.
    package static func read(
        from path: String = ResolverConfigurationFault.path
    ) throws(SystemError) -> [String] {
        let file = try FileDescriptor.opening(path)
        let descriptor = file.rawValue
        var bytes = [UInt8](repeating: 0, count: maximumFileSize)
        let count = try systemCall("read \(path)") { Glibc.read(descriptor, &bytes, bytes.count) }
        return parse(String(decoding: bytes[..<count], as: UTF8.self))
    }

    static func parse(_ text: String) -> [String] {
        let servers = text.split(whereSeparator: \.isNewline).compactMap { line -> String? in
            // The keyword must be at the start of the line (resolv.conf(5)).
            let words = line.split(whereSeparator: \.isWhitespace)
            guard line.hasPrefix("nameserver"), words.count >= 2, words[0] == "nameserver" else { return nil }
            return String(words[1])
        }
        return Array(servers.prefix(maximumServers))
    }
}

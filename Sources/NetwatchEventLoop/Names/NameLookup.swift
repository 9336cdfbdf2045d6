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

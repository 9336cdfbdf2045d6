internal import Glibc

extension NameResolver {
    /// The error of a failed lookup.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// The error code of `getaddrinfo(3)`: `EAI_NONAME`, `EAI_AGAIN`, …
        package let code: CInt
        /// The `errno` if the code is `EAI_SYSTEM`, otherwise 0.
        package let errno: CInt
        /// A fault in the machine's resolver configuration that may be the cause.
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
        /// The caller needs the answer to connect. A cached answer is acceptable.
        case needed
        /// The caller checks whether the answer has changed. A cached answer is never returned.
        case refresh
    }

    /// A started lookup, for ``NameResolver/abandon(_:)``.
    package struct Lookup: Hashable, Sendable {
        let caller: ResolverCore.CallerID
    }
}

extension NameResolver.Failure {
    /// Whether name servers answered that the name or its addresses do not exist. A stale answer is then no longer
    /// used (RFC 8767 §4).
    package var isAuthoritative: Bool {
        code == EAI_NONAME || code == Self.noData
    }

    /// Whether this process lacked memory, descriptors or threads. The name servers are not the cause then.
    package var isOwnShortage: Bool {
        code == EAI_MEMORY || code == EAI_SYSTEM && SystemError.shortages.contains(errno)
    }

    /// `EAI_NODATA` of <netdb.h>: the name exists but has no address. A GNU extension that Swift does not import.
    private static var noData: CInt { -5 }
}

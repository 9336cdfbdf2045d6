internal import Glibc

extension NameResolver {
    /// Why a name has no addresses.
    package struct Failure: Error, Hashable, CustomStringConvertible {
        /// The code of `getaddrinfo(3)`: `EAI_NONAME`, `EAI_AGAIN`, …
        package let code: CInt
        /// `errno` when the code is `EAI_SYSTEM`, else 0.
        package let errno: CInt
        /// What is wrong with the machine's own configuration, if that may be the cause.
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

    /// How urgent an answer is.
    package enum Urgency: Sendable {
        /// The caller waits for the answer in order to connect. A cached answer will do.
        case needed
        /// The caller wants to know whether the answer has changed. A cached answer is never returned.
        case refresh
    }

    /// A question that was asked, for ``NameResolver/abandon(_:)``.
    package struct Lookup: Hashable, Sendable {
        let asker: ResolverCore.Asker
    }
}

extension NameResolver.Failure {
    /// Whether the name servers said that the name, or its addresses, do not exist. That ends the use of a
    /// stale answer (RFC 8767 §4).
    package var isAuthoritative: Bool {
        code == EAI_NONAME || code == Self.noData
    }

    /// Whether this process, and no name server, lacked something: memory, descriptors, threads.
    package var isOwnShortage: Bool {
        code == EAI_MEMORY || code == EAI_SYSTEM && SystemError.shortages.contains(errno)
    }

    /// `EAI_NODATA` of <netdb.h>: the name exists but has no address. A GNU extension that Swift does not import.
    private static var noData: CInt { -5 }
}

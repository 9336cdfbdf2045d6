internal import Glibc

/// One attempt to connect to one address of a host.
public struct ConnectionAttempt: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    public let address: IPAddress
    /// The failed system call and its `errno(3)`; `nil` if there was no answer when the attempt ended.
    public let error: SystemError?

    /// Creates an attempt.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - error: Why there is no connection; `nil` if there was no answer.
    public init(address: IPAddress, error: SystemError?) {
        self.address = address
        self.error = error
    }

    /// The address and the result: `192.0.2.1: Connection refused`.
    public var description: String {
        guard let error else { return "\(address): no answer" }
        return "\(address): \(error.call == "connect" ? errnoDescription(error.errno) : "\(error)")"
    }
}

/// The error for a host to which no address could be connected.
package struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The attempts, in the order in which they started.
    package let attempts: [ConnectionAttempt]
    /// The number of addresses that were not tried.
    package let untried: Int

    /// The most informative error; `nil` if no address answered. A local shortage comes first, because it may hide an
    /// address that would have answered. Next is the first error of an address that has a route, then the first error
    /// of all.
    package var verdict: SystemError? {
        let errors = attempts.compactMap(\.error)
        return errors.first { SystemError.shortages.contains($0.errno) }
            ?? errors.first { !Self.noRoute.contains($0.errno) } ?? errors.first
    }

    /// All attempts in one line.
    package var description: String {
        let rest = untried == 0 ? [] : ["\(untried) more were not tried"]
        return (attempts.map(\.description) + rest).joined(separator: "; ")
    }

    /// Errors of a machine that has no route to the address or does not support its family.
    private static let noRoute = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]
}

extension SystemError {
    /// `errno(3)` values for a lack of descriptors, memory or threads.
    package static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN]
}

internal import Glibc

/// One attempt to connect to one address of a host.
public struct ConnectionAttempt: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    public let address: IPAddress
    /// The system call that failed, and its `errno(3)`; `nil` when nothing had been heard when the attempt was ended.
    public let error: SystemError?

    /// Describes an attempt.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - error: Why there is no connection; `nil` when there was no answer.
    public init(address: IPAddress, error: SystemError?) {
        self.address = address
        self.error = error
    }

    /// The address and what became of it: `192.0.2.1: Connection refused`.
    public var description: String {
        guard let error else { return "\(address): no answer" }
        return "\(address): \(error.call == "connect" ? errnoDescription(error.errno) : "\(error)")"
    }
}

/// Why none of a host's addresses could be connected to.
package struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// In the order in which they were begun.
    package let attempts: [ConnectionAttempt]
    /// The number of addresses that were not tried.
    package let untried: Int

    /// The most informative error. A local shortage comes first, since it may hide an address that would have answered; then
    /// the error of the first address that has a route; then the first error. `nil` when no address answered.
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

    /// Errors of a machine without a route to the address or without its protocol.
    private static let noRoute = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]
}

extension SystemError {
    /// `errno(3)` values for no free descriptors, memory or threads.
    package static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN]
}

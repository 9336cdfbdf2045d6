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
    /// How many addresses were not tried.
    package let untried: Int

    /// The error that says most: a shortage of this machine's, which may have hidden an address that answers; else that of
    /// the first address that there was a route to; else the first of all. `nil` when every address was silent.
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

    /// Errors of this machine, which has no route there or not the protocol.
    private static let noRoute = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]
}

extension SystemError {
    /// `errno(3)` of a machine without descriptors, memory or threads to be had.
    package static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN]
}

internal import Glibc

/// One attempt to connect to one address of a host.
public struct ConnectionAttempt: Hashable, Sendable, CustomStringConvertible {
    /// The address.
    public let address: IPAddress
    /// The failed system call and its `errno(3)`; `nil` if the server had not answered when the attempt ended.
    public let error: SystemError?

    /// Creates an attempt.
    ///
    /// - Parameters:
    ///   - address: The address.
    ///   - error: The reason why the attempt failed; `nil` if the server had not answered.
    public init(address: IPAddress, error: SystemError?) {
        self.address = address
        self.error = error
    }

    /// The address and the result, such as `192.0.2.1: Connection refused`.
    public var description: String {
        guard let error else { return "\(address): no answer" }
        return "\(address): \(error.call == "connect" ? errnoDescription(error.errno) : "\(error)")"
    }
}

/// The error of a host that could not be reached at any of its addresses.
package struct ConnectionFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The attempts, in the order in which they started.
    package let attempts: [ConnectionAttempt]
    /// The addresses that were not tried, because the time was over.
    package let untried: [IPAddress]

    /// The addresses with which the next connection to the host must begin, so that each address has its turn; empty if
    /// all addresses were tried.
    ///
    /// After the untried addresses come those that did not answer, because the last of them had little time.
    package var resumption: [IPAddress] {
        untried.isEmpty ? [] : untried + attempts.filter { $0.error == nil }.map(\.address)
    }

    /// The most informative error; `nil` if no attempt had an error. It is the first that exists of these:
    ///
    /// 1. A local shortage (``SystemError/shortages``). It may have prevented the attempt to an address that works.
    /// 2. The first error that does not mean a missing route.
    /// 3. The first error of all.
    package var verdict: SystemError? {
        let errors = attempts.compactMap(\.error)
        return errors.first { SystemError.shortages.contains($0.errno) }
            ?? errors.first { !Self.noRoute.contains($0.errno) } ?? errors.first
    }

    /// All attempts in one line.
    package var description: String {
        let rest = untried.isEmpty ? [] : ["\(untried.count) more were not tried"]
        return (attempts.map(\.description) + rest).joined(separator: "; ")
    }

    /// The `errno(3)` values of a machine that has no route to the address or does not support its family.
    private static let noRoute = [ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, EAFNOSUPPORT]
}

extension SystemError {
    /// The `errno(3)` values for a lack of descriptors, memory or threads.
    package static let shortages: Set<Int32> = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EAGAIN]
}

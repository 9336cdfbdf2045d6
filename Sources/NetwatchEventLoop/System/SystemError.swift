internal import Glibc

/// A failed system call: its name and `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the failed call, as in its manual page: `epoll_ctl`, `setns`, …
    public let call: String
    /// The error number of `errno(3)`.
    public let errno: Int32

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - call: The name of the call.
    ///   - errno: The error number.
    public init(call: String, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    /// The call and the C library's message: `setns: Operation not permitted`.
    public var description: String {
        "\(call): \(errnoDescription(errno))"
    }
}

/// Returns the C library's message for an error number (`strerror_r(3)`).
package func errnoDescription(_ errno: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
        guard strerror_r(errno, buffer.baseAddress!, buffer.count) == 0 else { return "error \(errno)" }
        return String(cString: buffer.baseAddress!)
    }
}

/// Calls `body`, repeatedly if interrupted by a signal (`EINTR`), and throws a ``SystemError`` for a result of -1.
@discardableResult
package func systemCall<Result: SignedInteger>(
    _ name: String,
    _ body: () -> Result
) throws(SystemError) -> Result {
    while true {
        let result = body()
        if result != -1 { return result }
        let error = errno
        if error != EINTR { throw SystemError(call: name, errno: error) }
    }
}

internal import Glibc

/// A failed system call: which one, and the `errno` it left.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The call that failed, as its manual page is named: `epoll_ctl`, `setns`, …
    public let call: String
    /// The error number of `errno(3)`.
    public let errno: Int32

    /// Describes a failed call.
    ///
    /// - Parameters:
    ///   - call: The name of the call.
    ///   - errno: The error number it left.
    public init(call: String, errno: Int32) {
        self.call = call
        self.errno = errno
    }

    /// The call and the C library's words for its error: `setns: Operation not permitted`.
    public var description: String {
        "\(call): \(errnoDescription(errno))"
    }
}

/// The C library's words for an error number (`strerror_r(3)`).
package func errnoDescription(_ errno: Int32) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
        guard strerror_r(errno, buffer.baseAddress!, buffer.count) == 0 else { return "error \(errno)" }
        return String(cString: buffer.baseAddress!)
    }
}

/// Calls `body` until it is not interrupted by a signal, and turns a result of -1 into ``SystemError``.
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

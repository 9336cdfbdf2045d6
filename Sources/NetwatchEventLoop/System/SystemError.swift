internal import Glibc

/// A failed system call: its name and `errno`.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The name of the failed call as in its manual page, such as `epoll_ctl`. The path or address of the call may
    /// follow.
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

    /// The call and the C library's message, such as `setns: Operation not permitted`.
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

/// Calls `body`, and repeats the call while signals interrupt it (`EINTR`). Throws a ``SystemError`` if the result is
/// -1.
///
/// - Parameter name: The name of the call for the error message.
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

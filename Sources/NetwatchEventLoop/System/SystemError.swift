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

/// Calls `body` with the strings as a null-terminated array of C strings, as execve(2) and posix_spawn(3) take the
/// arguments and the environment. The array must not be used after `body` returns.
package func withCStrings<Result>(
    _ strings: [String],
    _ body: ([UnsafeMutablePointer<CChar>?]) -> Result
) -> Result {
    let pointers = strings.map { strdup($0) }
    defer { for pointer in pointers { free(pointer) } }
    return body(pointers + [nil])
}

/// A library that is loaded when it is needed, and never unloaded. netwatch works without it.
package struct SharedLibrary: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer

    /// Returns `nil` if the library is not installed.
    ///
    /// - Parameter name: The file name with the version of the binary interface, such as `libz.so.1`.
    package init?(_ name: String) {
        guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        self.handle = handle
    }

    /// Returns a function of the library; `nil` if the library lacks it. `Function` must be its type, `@convention(c)`.
    package func function<Function>(_ name: String) -> Function? {
        dlsym(handle, name).map { unsafeBitCast($0, to: Function.self) }
    }
}

internal import Glibc

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

internal import Glibc
internal import NetwatchEventLoop

/// Runs `body` on a thread that sees an empty file system of 64 KiB at `path`. Other threads still see the original
/// contents of the directory, but they can use the files that `body` has opened.
///
/// Blocks the calling thread until `body` returns.
package func onSmallDisk<Result: Sendable>(
    at path: String,
    _ body: @escaping @Sendable () -> Result
) throws -> Result {
    // Swift's Glibc module does not export these functions and constants of the C library.
    typealias Unshare = @convention(c) (CInt) -> CInt
    typealias Mount =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>?, UInt, UnsafeRawPointer?
        ) -> CInt
    let (newNamespace, recursive, isPrivate): (CInt, UInt, UInt) = (0x0002_0000, 0x4000, 1 << 18)
    let result = Recorder<Swift.Result<Result, any Error>>()
    // A separate thread, because a thread cannot leave its new mount namespace.
    try startDetachedThread(named: "small-disk") {
        result.record(
            Swift.Result {
                let unshare = unsafeBitCast(dlsym(nil, "unshare"), to: Unshare.self)
                let mount = unsafeBitCast(dlsym(nil, "mount"), to: Mount.self)
                try systemCall("unshare") { unshare(newNamespace) }
                try systemCall("mount /") { mount("none", "/", nil, recursive | isPrivate, nil) }
                try "size=64k".withCString { size in
                    _ = try systemCall("mount tmpfs") { mount("tmpfs", path, "tmpfs", 0, size) }
                }
                return body()
            }
        )
        result.close()
    }
    result.waitForClosing()
    return try result.values[0].get()
}

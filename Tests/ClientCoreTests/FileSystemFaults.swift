internal import Foundation
internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A function of the C library that Swift's Glibc leaves out.
private func function<Function>(_ name: String, as type: Function.Type) -> Function {
    unsafeBitCast(dlsym(nil, name), to: type)
}

/// Runs `body` as a user whom no file belongs to. Only this thread's rights change (`setfsuid(2)`).
func asNobody(_ body: () -> Void) {
    let setfsuid = function("setfsuid", as: (@convention(c) (uid_t) -> CInt).self)
    _ = setfsuid(65534)
    body()
    _ = setfsuid(geteuid())
}

/// Runs `body` on a thread that sees a file system of 64 KiB at `path`; everybody else sees what was there.
func onSmallDisk<Result: Sendable>(
    at path: String,
    _ body: @escaping @Sendable () -> Result
) throws -> Result {
    typealias Mount =
        @convention(c) (
            UnsafePointer<CChar>, UnsafePointer<CChar>, UnsafePointer<CChar>?, UInt, UnsafeRawPointer?
        ) -> CInt
    let (newNamespace, recursive, isPrivate): (CInt, UInt, UInt) = (0x0002_0000, 0x4000, 1 << 18)
    let result = Recorder<Swift.Result<Result, any Error>>()
    // A thread of its own: it keeps the namespace for as long as it lives.
    try startDetachedThread(named: "small-disk") {
        result.record(
            Swift.Result {
                let unshare = function("unshare", as: (@convention(c) (CInt) -> CInt).self)
                let mount = function("mount", as: Mount.self)
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

/// A stream that says it has read that many bytes, whatever it was asked for.
final class LyingStream: InputStream {
    private let result: Int

    init(_ result: Int) {
        self.result = result
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int { result }
}

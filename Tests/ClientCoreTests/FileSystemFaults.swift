internal import Foundation
internal import Glibc

/// Looks up a function of the C library that Swift's Glibc module does not export.
private func function<Function>(_ name: String, as type: Function.Type) -> Function {
    unsafeBitCast(dlsym(nil, name), to: type)
}

/// Runs `body` with the file permissions of a user who owns no files. Affects only the current thread
/// (`setfsuid(2)`).
func asNobody(_ body: () -> Void) {
    let setfsuid = function("setfsuid", as: (@convention(c) (uid_t) -> CInt).self)
    _ = setfsuid(65534)
    body()
    _ = setfsuid(geteuid())
}

/// A stream whose `read` always returns the given count, even if it is not valid.
final class MisreportingStream: InputStream {
    private let result: Int

    init(_ result: Int) {
        self.result = result
        super.init(data: Data())
    }

    override func open() {}
    override func close() {}
    override func read(_ buffer: UnsafeMutablePointer<UInt8>, maxLength length: Int) -> Int { result }
}

internal import Glibc

/// A library that decodes a content coding. It is loaded at the first transfer over TLS or with a coding, and never
/// unloaded.
///
/// libcurl depends on the same libraries. netwatch does not use libcurl's decoders, because they do not report a
/// truncated body.
struct CodingLibrary: @unchecked Sendable {
    private let handle: UnsafeMutableRawPointer

    /// Returns `nil` if the library is not installed.
    init?(_ name: String) {
        guard let handle = dlopen(name, RTLD_NOW | RTLD_LOCAL) else { return nil }
        self.handle = handle
    }

    /// Returns a function of the library; `nil` if the library lacks it. `Function` must be its type, `@convention(c)`.
    func function<Function>(_ name: String) -> Function? {
        dlsym(handle, name).map { unsafeBitCast($0, to: Function.self) }
    }
}

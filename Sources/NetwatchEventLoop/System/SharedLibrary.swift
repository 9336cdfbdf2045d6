internal import Glibc

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

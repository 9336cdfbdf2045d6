internal import NetwatchEventLoop

/// The Public Suffix List: the domains below which anyone can register a name, such as `com`, `co.uk` and `github.io`.
/// A cookie for such a domain would be sent to servers of other owners.
///
/// The list is that of libpsl, on which libcurl usually depends. It is loaded at the first cookie with a `Domain`.
/// Without libpsl, only domains of one label are known to be public suffixes.
enum PublicSuffixes {
    /// Whether libpsl is installed.
    static var isAvailable: Bool { list != nil }

    /// Returns whether a domain is a public suffix.
    ///
    /// - Parameter domain: The lower-case domain in ASCII. It may end with a dot.
    static func contains(_ domain: String) -> Bool {
        let name = domain.hasSuffix(".") ? String(domain.dropLast()) : domain
        return !name.contains(".") || list?.contains(name) ?? false
    }

    private static let list = LoadedList()
}

/// The list of libpsl. libpsl does not change a list that it has loaded, so any thread may read it.
private struct LoadedList: @unchecked Sendable {
    typealias Load = @convention(c) @Sendable (UnsafePointer<CChar>?) -> OpaquePointer?
    typealias Contains = @convention(c) @Sendable (OpaquePointer, UnsafePointer<CChar>) -> CInt

    private let list: OpaquePointer
    private let isPublicSuffix: Contains

    /// Returns `nil` if libpsl is not installed, or has no list.
    init?() {
        guard let library = SharedLibrary("libpsl.so.5"),
            // Without a file name, this is the newer one of the system's list and the list in the library.
            let load: Load = library.function("psl_latest"), let list = load(nil),
            let contains: Contains = library.function("psl_is_public_suffix")
        else { return nil }
        (self.list, isPublicSuffix) = (list, contains)
    }

    func contains(_ name: String) -> Bool { isPublicSuffix(list, name) == 1 }
}

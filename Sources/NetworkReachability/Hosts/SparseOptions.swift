/// A compact form of ``PathOptions``, stored with each watched address. The defaults, the common case, need no
/// allocation.
struct SparseOptions: Hashable, Sendable {
    private final class Box: Sendable {
        let options: PathOptions

        init(_ options: PathOptions) { self.options = options }
    }

    private let box: Box?

    init(_ options: PathOptions) {
        box = options == PathOptions() ? nil : Box(options)
    }

    var options: PathOptions { box?.options ?? PathOptions() }

    var areDefaults: Bool { box == nil }

    /// Whether the options name something that any interface may have: a name or a source address.
    var dependOnInterfaces: Bool {
        guard let options = box?.options else { return false }
        return options.interface != nil || options.source != nil
    }

    static func == (left: SparseOptions, right: SparseOptions) -> Bool {
        left.box?.options == right.box?.options
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(box?.options)
    }
}

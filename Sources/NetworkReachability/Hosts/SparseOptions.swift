/// Path options that need no allocation when they are the defaults, which is the common case.
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

    static func == (left: SparseOptions, right: SparseOptions) -> Bool {
        left.box?.options == right.box?.options
    }

    func hash(into hasher: inout Hasher) {
        hasher.combine(box?.options)
    }
}

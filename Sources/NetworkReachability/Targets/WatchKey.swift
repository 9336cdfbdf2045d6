/// The key of a watched target: the target and its path options. Watches with equal keys share one state.
struct WatchKey: Hashable, Sendable {
    let target: PathTarget
    private let sparseOptions: SparseOptions

    init(target: PathTarget, options: PathOptions) {
        self.target = target
        sparseOptions = SparseOptions(options)
    }

    var options: PathOptions { sparseOptions.options }
}

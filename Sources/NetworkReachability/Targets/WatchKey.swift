/// The key of a watch: the target and the options of the packets.
struct WatchKey: Hashable, Sendable {
    let target: PathTarget
    private let sparseOptions: SparseOptions

    init(target: PathTarget, options: PathOptions) {
        self.target = target
        sparseOptions = SparseOptions(options)
    }

    var options: PathOptions { sparseOptions.options }
}

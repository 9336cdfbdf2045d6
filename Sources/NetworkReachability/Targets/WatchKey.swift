/// The key of a watched target: the target and its path options. Watches with equal keys share one state.
struct WatchKey: Hashable, Sendable {
    let target: PathTarget
    private let sparseOptions: SparseOptions

    init(target: PathTarget, options: PathOptions) {
        self.target = target
        sparseOptions = SparseOptions(options)
    }

    var options: PathOptions { sparseOptions.options }

    /// The name whose addresses must be looked up; `nil` if the addresses are known.
    var name: String? {
        guard case .host(let host) = target, host.knownAddresses == nil, case .name(let name) = host.kind
        else {
            return nil
        }
        return name
    }
}

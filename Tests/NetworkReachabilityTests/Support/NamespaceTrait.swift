internal import NetwatchTestSupport
internal import Testing

extension Trait where Self == ConditionTrait {
    /// Skips the tests where network namespaces cannot be created.
    static var needsNetworkNamespaces: Self {
        .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")")
    }
}

internal import NetwatchTestSupport
internal import Testing

extension Trait where Self == ConditionTrait {
    /// Skips the tests if this process cannot create network namespaces.
    static var needsNetworkNamespaces: Self {
        .enabled(if: NetworkNamespace.isAvailable, "\(NetworkNamespace.obstacle ?? "")")
    }
}

internal import NetworkReachability

/// The settings of the hosts that do not have their own.
package struct HostDefaults: Hashable, Sendable {
    /// See ``WatchedHost/interval``.
    package var interval: Duration = PathValidator.defaultInterval
    /// See ``WatchedHost/timeout``.
    package var timeout: Duration = .seconds(5)
    /// See ``WatchedHost/fall``.
    package var fall = 3
    /// See ``WatchedHost/rise``.
    package var rise = 2

    package init() {}
}

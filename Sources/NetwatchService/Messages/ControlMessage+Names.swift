package import NetwatchEventLoop

extension ControlMessage {
    /// The response to `GET /v1/names`: the state of the service's resolver.
    package struct Names: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// The name servers of `resolv.conf(5)`.
        package var nameServers: [String]
        /// Why there are no name servers, if there are none.
        package var nameServersError: String?
        /// The number of seconds for which no name server has answered a lookup within two seconds. `nil` while name
        /// servers answer within that time, or if no lookup was made.
        package var silentSeconds: Double?
        /// The number of lookups in progress.
        package var lookups: Int
        /// The number of names that wait for a thread to look them up.
        package var waiting: Int
        /// The number of known names; `names` lists at most 1000 of them.
        package var count: Int
        package var names: [Name]

        package struct Name: Codable, Hashable, Sendable {
            package var name: String
            /// `fresh`, `stale`, `failed` or `resolving`.
            package var state: String
            package var addresses: [String]
            /// The age of the addresses, or of the failure if there are no addresses.
            package var ageSeconds: Double?
            package var error: String?
            /// Whether the last lookup, or the present one, takes longer than two seconds.
            package var silent: Bool
        }

        /// - Parameter resolver: The state of the resolver.
        package init(_ resolver: ResolverSnapshot) {
            do throws(SystemError) {
                nameServers = try NameServers.read()
                if nameServers.isEmpty { nameServersError = ResolverConfigurationFault().map { "\($0)" } }
            } catch {
                nameServers = []
                nameServersError = ResolverConfigurationFault().map { "\($0)" } ?? "\(error)"
            }
            silentSeconds = resolver.unresponsive.map { $0 / .seconds(1) }
            lookups = resolver.threads
            waiting = resolver.waiting
            count = resolver.names.count
            names = resolver.names.prefix(ControlMessage.longestPage).map(Name.init)
        }
    }
}

extension ControlMessage.Names.Name {
    init(_ name: ResolverSnapshot.Name) {
        self.name = name.name
        state = name.state.rawValue
        addresses = name.addresses.map(\.description)
        ageSeconds = name.age.map { $0 / .seconds(1) }
        error = name.failure.map { "\($0)" }
        silent = name.isSlow
    }
}

package import Foundation
package import NetwatchEventLoop

extension ControlMessage {
    /// The response to `GET /v1/hosts`.
    package struct Hosts: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        /// In the order of the configuration.
        package var hosts: [Host]
    }

    /// A watched host.
    package struct Host: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var name: String
        /// The URL, `tcp HOST:PORT` or `route HOST`.
        package var check: String
        /// `up`, `degraded` (up, but the last probe failed), `down` or `unknown`.
        package var state: String
        /// For `down`: `local` or `remote`.
        package var cause: String?
        /// When the state began. `degraded` is a part of `up`.
        package var since: Date?
        /// Why the host is down or unknown, or why the last probe failed.
        package var reason: String?
        /// The latency of the last successful probe, in seconds.
        package var latencySeconds: Double?
        package var probedAt: Date?
        /// The part of the time with a path in which the host was up; missing if that is not known.
        package var uptime: Uptime
        package var intervalSeconds: Double
        package var timeoutSeconds: Double
        package var fall: Int
        package var rise: Int
    }

    /// From 0 to 1.
    package struct Uptime: Codable, Hashable, Sendable {
        package var day: Double?
        package var week: Double?
        package var month: Double?

        private enum CodingKeys: String, CodingKey {
            case day = "24h"
            case week = "7d"
            case month = "30d"
        }
    }

    /// The response to `GET /v1/hosts/{name}/history`.
    package struct History: Codable, Hashable, Sendable {
        package var v = ControlMessage.version
        package var name: String
        /// `24h`, `7d`, `30d` or `365d`.
        package var window: String
        package var uptime: Double?
        package var p50Seconds: Double?
        package var p95Seconds: Double?
        /// Equal steps, the oldest first. The last one contains the current time.
        package var steps: [Step]
        /// The newest first, at most 100.
        package var outages: [Outage]

        package struct Step: Codable, Hashable, Sendable {
            package var start: Date
            /// The seconds in each state. The rest of the step is unknown.
            package var upSeconds: Double
            package var remoteSeconds: Double
            package var localSeconds: Double
            package var probes: Int
            package var failures: Int
            /// Quantiles of the latency; missing without successful probes.
            package var p50Seconds: Double?
            package var p95Seconds: Double?
        }

        package struct Outage: Codable, Hashable, Sendable {
            package var cause: String
            package var start: Date
            /// Missing while the outage lasts.
            package var end: Date?
            package var reason: String?
        }
    }
}

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

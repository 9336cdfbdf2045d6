internal import ClientCore
internal import Dispatch
internal import Foundation
internal import NetwatchEventLoop
internal import NetworkReachability
internal import OfflineQueue

/// The checks of this machine. They send nothing beyond it, except a query to each name server.
enum MachineChecks {
    static func netlink() -> DoctorFinding {
        let interfaces = PathMonitor.shared.snapshot.interfaces
        guard let failure = PathMonitor.shared.failure else {
            return .ok("netlink is available, with \(CountText.format(interfaces.count, "interface"))")
        }
        return .problem(
            "netlink is unavailable (\(failure)), so reachability is unknown",
            advice: "allow sockets of the family `AF_NETLINK` in the sandbox or container"
        )
    }

    static func transport() -> [DoctorFinding] {
        if let unusable = CommandError.unusableTransport { return [.problem(unusable)] }
        let shortcomings = SessionManager.transportShortcomings
        guard !shortcomings.isEmpty else { return [.ok(SessionManager.transportLibraries)] }
        let advice = "install libcurl with OpenSSL and HTTP/2, as in Debian"
        return shortcomings.map {
            SessionManager.canTransferSecurely ? .warning($0, advice: advice) : .problem($0, advice: advice)
        }
    }

    /// Sends a query to each name server.
    static func resolver() async -> DoctorFinding {
        if let fault = ResolverConfigurationFault() {
            return .warning(
                "\(fault), so host names cannot be looked up",
                advice: "name a server in `\(ResolverConfigurationFault.path)`"
            )
        }
        let servers = (try? NameServers.read()) ?? []
        let outcomes = await DispatchQueue.global().run { NameServerProbe.ask(servers) }
        return finding(Array(zip(servers, outcomes)))
    }

    /// Returns the finding on the name servers and their answers. It is no problem if they do not answer, because an
    /// outage of the network has the same effect.
    static func finding(_ servers: [(address: String, outcome: NameServerProbe.Outcome)]) -> DoctorFinding {
        let list = servers.map { server in
            let address = Printer.printable(server.address)
            return fault(server.outcome).map { "\(address) (\($0))" } ?? address
        }
        let text = "name servers: \(list.joined(separator: " "))"
        let failed = servers.count { fault($0.outcome) != nil }
        guard failed > 0 else { return .ok(text) }
        let path = ResolverConfigurationFault.path
        let advice = "check the network and these servers, and correct `\(path)`"
        let effect = failed == servers.count ? "host names cannot be looked up" : "lookups may take long"
        return .warning("\(text), so \(effect)", advice: advice)
    }

    /// Says why a name server is of no use; `nil` if it is.
    private static func fault(_ outcome: NameServerProbe.Outcome) -> String? {
        switch outcome {
        // The server does not get answers from other servers. Any other code is an answer.
        case .answered(code: 2): "answers SERVFAIL"
        case .answered: nil
        case .silent: "does not answer"
        case .unreachable(let errno): errnoDescription(errno)
        case .notAnAddress: "is not an IP address"
        }
    }

    /// Looks up a name of this machine and its path. `localhost` is never sent to a name server (RFC 6761 §6.3).
    static func loopback() async -> DoctorFinding {
        let name = "localhost"
        if let host = NetworkHost(name) {
            for await status in PathMonitor.shared.statuses(of: .host(host)) {
                let text = "`\(name)` is \(status.reachability.summary) (\(status.summary))"
                return status.isReachable ? .ok(text) : .warning(text, advice: "set the interface `lo` up")
            }
        }
        return .warning("`\(name)` could not be looked up")
    }

    static func clock() -> DoctorFinding {
        let time = Date().formatted(.iso8601)
        switch StoreClock.system.isSynchronized() {
        case true?: return .ok("\(time), synchronized")
        case false?:
            return .warning(
                "\(time), and the kernel reports that the clock is not synchronized",
                advice: "start a time service, because certificates and due times depend on the clock"
            )
        case nil:
            return .warning(
                "\(time), and the kernel does not report whether the clock is synchronized",
                advice:
                    "permit the system calls adjtimex and clock_adjtime, with which netwatch only reads the state"
            )
        }
    }
}

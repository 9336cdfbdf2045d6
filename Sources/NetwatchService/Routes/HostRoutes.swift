internal import FoundationEssentials
internal import NIOHTTP1

/// The routes for the watched hosts.
struct HostRoutes: Sendable {
    let hosts: HostsView

    var routes: [ControlRouter.Route] {
        [
            .init(.GET, "/v1/hosts", access: .read, throwing: { _ in try await list() }),
            .init(.GET, "/v1/hosts/{name}", access: .read, throwing: { try await show($0) }),
            .init(
                .GET,
                "/v1/hosts/{name}/history",
                access: .read,
                query: ["window"],
                throwing: { try await history($0) }
            ),
        ]
    }

    private func list() async throws -> ControlResponse {
        .json(ControlMessage.Hosts(hosts: try await hosts.all()), encoder: ControlMessage.encoder)
    }

    private func show(_ request: ControlRequest) async throws -> ControlResponse {
        .json(try await hosts.host(in: request), encoder: ControlMessage.encoder)
    }

    private func history(_ request: ControlRequest) async throws -> ControlResponse {
        let host = try await hosts.host(in: request)
        let window = try HistoryWindow(in: request)
        let history = try await hosts.history(of: host.name, window)
        return .json(history, encoder: ControlMessage.encoder)
    }
}

extension HostsView {
    /// Returns the host that the path names.
    func host(in request: ControlRequest) async throws -> ControlMessage.Host {
        let name = request.parameters["name"] ?? ""
        let all = try await all()
        guard let host = all.first(where: { $0.name == name }) else {
            let names = all.map { "`\($0.name)`" }.joined(separator: ", ")
            throw Problem(
                .notFound,
                code: "unknown_host",
                detail: "no host `\(name)` is watched; watched: \(names.isEmpty ? "none" : names)"
            )
        }
        return host
    }
}

extension HistoryWindow {
    /// Reads the window of the query. Default: 24 hours.
    init(in request: ControlRequest) throws(Problem) {
        guard let text = request.value(of: "window") else {
            self = .day
            return
        }
        guard let window = HistoryWindow(rawValue: text) else {
            let accepted = HistoryWindow.allCases.map(\.rawValue).joined(separator: ", ")
            throw .malformedQuery("window", text, accepted: accepted)
        }
        self = window
    }
}

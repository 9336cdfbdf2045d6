internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import NetwatchTestSupport
internal import OfflineQueue

/// A network that intercepts plain HTTP: a server responds to each request as a captive portal or another server
/// would, until ``letThrough()``. After that it responds as the real server, with the header field that the requests'
/// rule expects.
///
/// What happens to a request is chosen by the first component of its path.
final class HostileNetwork: Sendable {
    /// How the network intercepts a request.
    enum Behaviour: String, CaseIterable, Sendable {
        /// A portal redirects to its page.
        case redirect
        /// A portal responds with its page and status 200.
        case page
        /// A portal responds as RFC 6585 §6 demands.
        case required
        /// A name server points to another server, which accepts the request.
        case otherServer
        /// Another server does not know the path.
        case otherServerRefuses
        /// A portal demands a login as the server itself could.
        case unauthorized
        /// A portal is overloaded.
        case overloaded
        /// A portal limits the rate, for ten years.
        case limited
        /// The connection is reset after the upload.
        case reset

        /// Whether the behaviour is a response. The attempt that receives it does not count.
        var isResponse: Bool { self != .reset }

        /// Whether the response says that the server did not apply the request, so that any request may be repeated.
        var isUnapplied: Bool { self == .required || self == .limited }

        var action: ScriptedServer.Action {
            let html = ScriptedServer.Header("Content-Type", "text/html; charset=utf-8")
            let page = Array("<html>Log in".utf8)
            switch self {
            case .redirect:
                return .respond(status: 302, headers: [.init("Location", "http://portal.example/")])
            case .page: return .respond(status: 200, headers: [html], body: page)
            case .required: return .respond(status: 511, headers: [html], body: page)
            case .otherServer:
                let json = ScriptedServer.Header("Content-Type", "application/json")
                return .respond(status: 201, headers: [json], body: Array(#"{"ok":true}"#.utf8))
            case .otherServerRefuses: return .respond(status: 404, body: Array("not found".utf8))
            case .unauthorized: return .respond(status: 401, headers: [.init("WWW-Authenticate", "Basic")])
            case .overloaded: return .respond(status: 503)
            case .limited: return .respond(status: 429, headers: [.init("Retry-After", "315360000")])
            case .reset: return .reset
            }
        }
    }

    private struct State {
        var isOpen = false
        /// The number of intercepted probes for captive portals.
        var probes = 0
        /// The targets of the intercepted requests.
        var intercepted: Set<String> = []
        /// The targets that the real server received, each as often as it arrived.
        var arrived: [String] = []
    }

    private let core: Core
    private let server: ScriptedServer

    private final class Core: Sendable {
        let state = Lock(State())
        let changed = ChangeSignal()

        func action(for request: ScriptedServer.Request) -> ScriptedServer.Action {
            defer { changed.post() }
            return state.withLock { state in
                if request.target == HostileNetwork.probeTarget {
                    state.probes += state.isOpen ? 0 : 1
                    return state.isOpen ? .respond(status: 204) : Behaviour.page.action
                }
                if state.isOpen {
                    state.arrived.append(request.target)
                    return .respond(status: 201, headers: [.init("X-Server", "real")])
                }
                state.intercepted.insert(request.target)
                return Behaviour(rawValue: request.target.split(separator: "/").first.map(String.init) ?? "")!
                    .action
            }
        }
    }

    init() throws {
        let core = Core()
        self.core = core
        server = try ScriptedServer { core.action(for: $0) }
    }

    /// The target of probes for captive portals.
    private static let probeTarget = "/generate_204"

    /// The origin of the requests. Its name is not one of this machine, whose responses come from no portal.
    let url = "http://server.example"

    var probeURL: String { server.url + Self.probeTarget }

    /// Returns a session that sends requests to ``url`` to the network's server.
    func session() -> SessionManager {
        struct Route: RequestAdapter {
            let server: String

            func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
                var adapted = urlRequest
                adapted.url = URL(string: server + urlRequest.url!.path)
                return adapted
            }
        }
        let session = SessionManager.bare()
        session.adapter = Route(server: server.url)
        return session
    }

    /// The targets that the real server received, each as often as it arrived.
    var arrived: [String] { core.state.withLock { $0.arrived } }

    /// Waits until this number of different requests was intercepted.
    func intercepted(_ count: Int) async throws {
        try await core.changed.until { core.state.withLock { $0.intercepted.count } >= count }
    }

    /// The number of different requests that were intercepted, without probes.
    var interceptedCount: Int { core.state.withLock { $0.intercepted.count } }

    /// Waits until this number of probes was intercepted.
    func interceptedProbes(_ count: Int) async throws {
        try await core.changed.until { core.state.withLock { $0.probes } >= count }
    }

    func letThrough() { core.state.withLock { $0.isOpen = true } }
}

internal import NetwatchEventLoop
internal import NetwatchTestSupport

/// A network whose portal responds with its page to every request until a user has logged in.
final class CaptivePortal: Sendable {
    static let page = "http://portal.example/login"
    private let isOpen = Lock(false)

    func logIn() { isOpen.withLock { $0 = true } }

    func answer(_ request: ScriptedServer.Request) -> ScriptedServer.Action {
        guard isOpen.withLock({ $0 }) else {
            return .respond(status: 302, headers: [.init("Location", Self.page)])
        }
        return .respond(status: request.target == "/generate_204" ? 204 : 201)
    }
}

internal import Glibc
internal import NetwatchEventLoop
internal import NetwatchService
internal import OfflineQueue
internal import Testing

@testable internal import netwatch

/// What `netwatch serve` proposes after an error.
@Suite struct ServeFailureTests {
    private func failure(
        isNamed: Bool = false,
        webPlace: String? = nil,
        _ environment: [String: String] = [:],
        isRoot: Bool = false
    ) -> ServeFailure {
        ServeFailure(
            isDirectoryNamed: isNamed,
            isSocketNamed: isNamed,
            webPlace: webPlace,
            paths: ServicePaths(environment: environment, isRoot: isRoot)
        )
    }

    @Test func `the error of a port in use names the key with its file, or the option`() throws {
        let address = try #require(WebAddress("127.0.0.1:9317"))
        let error = ControlSocketError.web(address, SystemError(call: "bind", errno: EADDRINUSE))
        let configured = failure(webPlace: "/etc/netwatch/netwatch.toml:12").error(error)
        #expect(configured.status == .unknown && configured.message.contains("`127.0.0.1:9317`"))
        #expect(
            configured.hint
                == "`web.listen` in `/etc/netwatch/netwatch.toml:12` sets the address; `--web` replaces it, and "
                + "`--config` names another configuration file"
        )
        #expect(failure().error(error).hint == "`--web` names another address and port")
    }

    @Test func `the error of a default path names the option, and the missing runtime directory`() {
        let error = ControlSocketError.directory(
            path: "/run/netwatch",
            SystemError(call: "mkdir", errno: EACCES)
        )
        let option = "`--socket` names another path"
        #expect(failure().error(error).hint == "`XDG_RUNTIME_DIR` is not set; \(option)")
        #expect(failure(["XDG_RUNTIME_DIR": "/run/user/7"]).error(error).hint == option)
        #expect(failure(isRoot: true).error(error).hint == option)
        #expect(failure(["NETWATCH_SOCKET": "/a"]).error(error).hint == nil)
        #expect(failure(isNamed: true).error(error).hint == nil)
        let directory = QueueError(.directoryUnusable, "mkdir //.local: Permission denied")
        #expect(failure().error(directory).hint == "`--state-dir` names another directory")
        #expect(failure(isNamed: true).error(directory).hint == nil)
    }
}

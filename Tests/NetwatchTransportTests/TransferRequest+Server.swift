internal import NetwatchTestSupport
internal import NetwatchTransport

extension TransferRequest {
    /// Creates a request to a server.
    ///
    /// - Parameter adjust: Changes the request. Default: no changes.
    init(
        _ server: ScriptedServer,
        _ path: String = "/",
        method: String = "GET",
        body: TransferBody? = nil,
        _ adjust: (inout TransferRequest) -> Void = { _ in }
    ) {
        self.init(url: server.url + path, method: method)
        self.body = body
        adjust(&self)
    }
}

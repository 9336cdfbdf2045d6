internal import Foundation
internal import NIOHTTP1
internal import NetwatchTestSupport
internal import NetworkReachability
internal import OfflineQueue
internal import Testing

@testable internal import NetwatchService

/// A control server with all routes of the service, and with the resources that the examples in docs/openapi.json name.
/// Its queue is not started, so it sends nothing.
struct OpenAPIFixture {
    let state: ServiceState
    let router: ControlRouter
    private let directory: ScratchDirectory
    private let queue: OfflineQueue
    private let server: ControlServer

    /// - Parameters:
    ///   - configuration: The configuration of the service. Default: one without files.
    ///   - scan: The record of earlier scans of the store, as JSON. Default: none.
    init(configuration: ConfigurationInUse = ConfigurationInUse(), scan: String? = nil) async throws {
        directory = try ScratchDirectory()
        if let scan {
            let state = URL(filePath: directory.file("state"))
            try FileManager.default.createDirectory(
                at: state,
                withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700]
            )
            try Data(scan.utf8).write(to: state.appending(path: "queue.scan"))
        }
        queue = try await directory.openQueue()
        let history = try HostHistory(path: directory.file("history.sqlite"))
        let monitor = HostMonitor(monitor: .shared, history: history, logger: .recording(Recorder()))
        let host = try NetworkHost(validating: "127.0.0.1")
        await monitor.update([WatchedHost(name: "api", check: .route(host))])
        let view = HostsView(monitor: monitor, history: history)
        state = ServiceState(
            queue: queue,
            monitor: .shared,
            hosts: view,
            version: "1.2.3",
            configuration: configuration
        )
        state.readiness.phase = .ready
        await state.reloads.use { .applied(hosts: 1, restartKeys: ["web.listen"]) }
        router = ControlRouter(state.routes(access: AccessRules()))
        var limits = ControlServer.Limits()
        limits.bodyBytes = ControlMessage.maximumMessageBytes
        server = try ControlServer(
            path: directory.file("control.sock"),
            router: router,
            limits: limits,
            logger: .recording(Recorder())
        )
        try await addResources()
    }

    private func addResources() async throws {
        let origin = "https://api.example.com"
        try await queue.register(try QueueCredential(.bearer("t"), origins: [origin]), as: "api")
        _ = try await queue.enqueue(
            QueueRequest(method: "GET", url: "\(origin)/orders"),
            options: EnqueueOptions(id: "order-7")
        )
        _ = try await queue.hold(["order-7"])
        _ = try await queue.appendToBody("report-1", Data("hello".utf8), at: 0)
        _ = try await queue.appendToBody("export-1", Data(Self.emptyExport.utf8), at: 0, for: .import)
    }

    private static let emptyExport = """
        {"v":1,"type":"netwatch-queue-export","created":1795702874254,"dead":true}
        {"end":{"requests":0,"sha256":"1b67b27e4d27e882243aaa8eb62e9d3bee2dc766e718ceb12fe4e0314ffd44ec"}}

        """

    func stop() async {
        await server.stop()
        await queue.stop()
    }

    /// Sends requests, each over a separate connection, and returns the responses.
    func responses(to requests: [OpenAPIRequest]) async throws -> [RawResponse] {
        let socket = directory.file("control.sock")
        return try await offPool {
            try requests.map { request in
                let client = try RawClient(socket)
                try client.send(request.bytes)
                return try client.response(toHead: request.method == "HEAD")
            }
        }
    }
}

/// A request that a test builds from the document.
struct OpenAPIRequest: Sendable {
    var method: String
    /// The path with parameters in braces.
    var path: String
    /// The values of the parameters in the path, percent-encoded.
    var names: [String: String] = [:]
    /// The query items, percent-encoded.
    var query: [String] = []
    var headers: [String] = []
    var body: [UInt8]?

    var target: String {
        let path = names.reduce(path) { $0.replacing("{\($1.key)}", with: $1.value) }
        return path + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
    }

    fileprivate var bytes: [UInt8] {
        let length = body.map { ["Content-Length: \($0.count)"] } ?? []
        let head = ["\(method) \(target) HTTP/1.1", "Host: netwatch"] + headers + length
        return Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + (body ?? [])
    }
}

extension OpenAPIDocument.Parameter {
    /// The query items of a value: one for each element of an array.
    func items(_ value: JSONValue) -> [String] {
        (schema["type"] == .string("array") ? value.elements : [value]).map { "\(name)=\($0.queryText)" }
    }
}

extension JSONValue {
    /// The value as a percent-encoded text in a query or a path.
    var queryText: String {
        let text =
            switch self {
            case .null: ""
            case .boolean(let value): "\(value)"
            case .number(let value): value.rounded() == value ? "\(Int64(value))" : "\(value)"
            case .string(let value): value
            case .array, .object: "\(self)"
            }
        return text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    }
}

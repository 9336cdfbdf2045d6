internal import Foundation

/// A way to make HTTP requests that is measured. Whatever fails ends the process.
protocol Client: Sendable {
    /// What it is called on the command line.
    static var name: String { get }

    /// - Parameter connections: How many it may open to one server.
    init(connections: Int)

    /// Requests a URL, and calls back on any thread when its whole body is in memory: with whether the status was
    /// 200 and the body not empty.
    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void)

    /// Downloads a body without keeping it; returns its length.
    func download(_ url: String) async throws -> Int

    /// Downloads a body to a file; returns its length.
    func save(_ url: String, to path: String) async throws -> Int

    /// Sends a file in a PUT.
    func upload(_ path: String, to url: String) async throws
}

struct Unanswered: Error {}

/// The client of a name.
func client(_ name: String, connections: Int) -> any Client {
    let all: [any Client.Type] = [
        TransportClient.self, SessionClient.self, AwaitingClient.self, FoundationClient.self,
    ]
    guard let found = all.first(where: { $0.name == name }) else { fatalError("no client is called \(name)") }
    return found.init(connections: connections)
}

func length(ofFile path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
}

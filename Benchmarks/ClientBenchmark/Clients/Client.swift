internal import Foundation

/// An HTTP client that is measured.
protocol Client: Sendable {
    /// The client's name on the command line.
    static var name: String { get }

    /// - Parameter connections: The maximum number of connections to one server.
    init(connections: Int)

    /// Requests a URL. Calls the completion on any thread when the whole body is in memory. The completion receives
    /// whether the status is 200 and the body is not empty.
    func get(_ url: String, _ completion: @escaping @Sendable (Bool) -> Void)

    /// Downloads and discards a body. Returns its length.
    func download(_ url: String) async throws -> Int

    /// Downloads a body to a file. Returns its length.
    func save(_ url: String, to path: String) async throws -> Int

    /// Uploads a file with PUT.
    func upload(_ path: String, to url: String) async throws
}

/// The error of a transfer without a usable response or file.
struct Unanswered: Error {}

/// Creates the client that has the given name on the command line.
func client(_ name: String, connections: Int) -> any Client {
    let all: [any Client.Type] = [
        TransportClient.self, SessionClient.self, AwaitingClient.self, FoundationClient.self,
    ]
    guard let found = all.first(where: { $0.name == name }) else { fatalError("no client is called \(name)") }
    return found.init(connections: connections)
}

/// Returns the length of a file in bytes.
func length(ofFile path: String) throws -> Int {
    try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0
}

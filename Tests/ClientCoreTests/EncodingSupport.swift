internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

/// What Python makes of a request's bytes: it shares nothing with what wrote them.
func python(_ script: String, _ arguments: [String]) async throws -> String {
    let program = try Subprocess("/usr/bin/python3", ["-c", script] + arguments)
    let outcome = try await program.outcome()
    try #require(outcome.ending == .exited(0), "\(outcome.errors.joined(separator: "\n"))")
    return outcome.output.joined(separator: "\n")
}

/// A request to encode into.
func plainRequest(_ url: String = "https://example.com/", _ method: HTTPMethod = .get) throws -> URLRequest {
    try URLRequest(url: url, method: method)
}

extension URLRequest {
    /// The body as text.
    var bodyText: String? { httpBody.map { String(decoding: $0, as: UTF8.self) } }
}

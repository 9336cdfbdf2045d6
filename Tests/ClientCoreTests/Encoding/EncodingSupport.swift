internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchTestSupport
internal import Testing

/// Runs a Python script that decodes a request's bytes. Python shares no code with the encoder under test.
func python(_ script: String, _ arguments: [String]) async throws -> String {
    let program = try Subprocess("/usr/bin/python3", ["-c", script] + arguments)
    let outcome = try await program.outcome()
    try #require(outcome.ending == .exited(0), "\(outcome.errors.joined(separator: "\n"))")
    return outcome.output.joined(separator: "\n")
}

/// Returns a request to encode parameters into.
func plainRequest(_ url: String = "https://example.com/", _ method: HTTPMethod = .get) throws -> URLRequest {
    try URLRequest(url: url, method: method)
}

extension URLRequest {
    /// The body as text.
    var bodyText: String? { httpBody.map { String(decoding: $0, as: UTF8.self) } }
}

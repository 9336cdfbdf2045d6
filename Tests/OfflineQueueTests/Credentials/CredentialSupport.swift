internal import ClientCore
internal import Foundation
internal import FoundationNetworking
internal import NetwatchEventLoop
internal import OfflineQueue

/// A token that a test changes, and that counts how often it was refreshed.
final class TestToken: Sendable {
    private let state: Lock<(value: String, refreshes: Int)>

    init(_ value: String) {
        state = Lock((value, 0))
    }

    var value: String { state.withLock { $0.value } }
    var refreshes: Int { state.withLock { $0.refreshes } }

    func set(_ value: String) { state.withLock { $0.value = value } }

    func refresh(to value: String) {
        state.withLock { $0 = (value, $0.refreshes + 1) }
    }
}

/// An adapter from a closure.
struct TestAdapter: RequestAdapter {
    let change: @Sendable (inout URLRequest) throws -> Void

    func adapt(_ urlRequest: URLRequest) throws -> URLRequest {
        var request = urlRequest
        try change(&request)
        return request
    }
}

/// An interceptor that adds a token, and replaces it after a response with 401.
struct TestInterceptor: RequestInterceptor {
    let token: TestToken
    let next: String?

    func adapt(_ urlRequest: URLRequest, for session: SessionManager) async throws -> URLRequest {
        var request = urlRequest
        request.setValue("Bearer \(token.value)", forHTTPHeaderField: "Authorization")
        return request
    }

    func retry(_ request: Request, for session: SessionManager, dueTo error: any Error) async -> RetryResult {
        guard request.response?.statusCode == 401, let next else { return .doNotRetry }
        token.refresh(to: next)
        return .retry
    }
}

extension Attempt {
    func value(of name: String) -> String? { headers.first { $0.name == name }?.value }
}

/// Returns the paths of the files in a directory whose bytes contain a text.
func files(in directory: String, containing text: String) throws -> [String] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory)
    return names.filter { name in
        let data = FileManager.default.contents(atPath: "\(directory)/\(name)")
        return data?.firstRange(of: Data(text.utf8)) != nil
    }
}

internal import ClientCore
internal import Foundation
internal import FoundationNetworking

/// Returns a response head for tests without a server.
func head(_ status: Int = 200, type: String? = nil) -> HTTPURLResponse {
    let fields = type.map { ["Content-Type": $0] }
    let url = URL(fileURLWithPath: "/")
    return HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields)!
}

/// Returns the name of the reason why a response could not be serialized.
func serializationFailure<Value>(_ result: Result<Value, any Error>) -> String? {
    guard case .responseSerializationFailed(let reason) = result.error as? AFError else { return nil }
    return String("\(reason)".prefix { $0 != "(" })
}

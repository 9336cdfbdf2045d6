internal import ClientCore
internal import Foundation
internal import FoundationNetworking

/// The head of a response that nobody sent.
func head(_ status: Int = 200, type: String? = nil) -> HTTPURLResponse {
    let fields = type.map { ["Content-Type": $0] }
    let url = URL(fileURLWithPath: "/")
    return HTTPURLResponse(url: url, statusCode: status, httpVersion: nil, headerFields: fields)!
}

/// Why a response could not be serialized, by the name of the reason.
func serializationFailure<Value>(_ result: Result<Value, any Error>) -> String? {
    guard case .responseSerializationFailed(let reason) = result.error as? AFError else { return nil }
    return String("\(reason)".prefix { $0 != "(" })
}

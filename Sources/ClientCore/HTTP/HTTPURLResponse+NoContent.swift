internal import Foundation
internal import FoundationNetworking

extension HTTPURLResponse {
    /// Whether the status says that the response has no content: 204 or 205.
    var hasNoContent: Bool { Self.hasNoContent(statusCode) }

    /// Returns whether the status is 204 or 205 (RFC 9110 §15.3.5, §15.3.6).
    static func hasNoContent(_ status: Int) -> Bool { status == 204 || status == 205 }
}

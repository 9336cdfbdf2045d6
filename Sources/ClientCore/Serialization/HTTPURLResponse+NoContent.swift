internal import Foundation
internal import FoundationNetworking

extension HTTPURLResponse {
    /// Whether the status alone says that there is no content.
    var hasNoContent: Bool { Self.hasNoContent(statusCode) }

    /// 204 and 205 (RFC 9110 §15.3.5, §15.3.6).
    static func hasNoContent(_ status: Int) -> Bool { status == 204 || status == 205 }
}

internal import Foundation
internal import FoundationNetworking

extension HTTPURLResponse {
    /// Whether the status alone says that there is no content: 204 and 205 (RFC 9110 §15.3.5, §15.3.6).
    var hasNoContent: Bool { statusCode == 204 || statusCode == 205 }
}

internal import Foundation
internal import FoundationNetworking

/// The HTTP authentication schemes that libcurl supports, by their lower-case names.
enum AuthenticationScheme: String, CaseIterable, Sendable {
    case basic
    case digest
    case negotiate
    case ntlm

    /// Foundation's name of the scheme, as in `URLProtectionSpace`.
    var foundationName: String {
        switch self {
        case .basic: NSURLAuthenticationMethodHTTPBasic
        case .digest: NSURLAuthenticationMethodHTTPDigest
        case .negotiate: NSURLAuthenticationMethodNegotiate
        case .ntlm: NSURLAuthenticationMethodNTLM
        }
    }
}

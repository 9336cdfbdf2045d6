internal import Foundation
internal import FoundationNetworking

/// The properties of a `URLSessionConfiguration` on Linux, grouped by how netwatch treats them.
///
/// netwatch ignores an unsupported property if that is harmless. It refuses the configuration if ignoring the
/// property would send data to a destination, or by a route, that the program has ruled out.
enum ConfigurationProperty: String, CaseIterable, Sendable {
    // Used. Refused only if the value is invalid.
    case httpAdditionalHeaders
    case timeoutIntervalForRequest
    case timeoutIntervalForResource
    case httpCookieStorage
    case httpCookieAcceptPolicy
    case httpShouldSetCookies
    case httpMaximumConnectionsPerHost

    // Refused, unless the value requests what netwatch does anyway.
    case connectionProxyDictionary
    case allowsCellularAccess
    case protocolClasses
    case requestCachePolicy
    case identifier

    // Ignored, whatever the value.
    case networkServiceType
    case isDiscretionary
    case sharedContainerIdentifier
    case shouldUseExtendedBackgroundIdleMode
    case httpShouldUsePipelining
    case urlCredentialStorage
    case urlCache

    /// Returns why the configuration is refused: its first refused property, the reason, and what is accepted. `nil` if
    /// the configuration is accepted.
    static func refusal(of configuration: URLSessionConfiguration) -> String? {
        allCases.lazy.compactMap { property in
            property.refusal(of: configuration).map { "`\(property.rawValue)` \($0)" }
        }.first
    }

    private func refusal(of configuration: URLSessionConfiguration) -> String? {
        switch self {
        case .connectionProxyDictionary:
            configuration.connectionProxyDictionary?.isEmpty ?? true ? nil : "is not supported; leave it nil"
        case .allowsCellularAccess:
            configuration.allowsCellularAccess ? nil : "is not supported; leave it true"
        case .protocolClasses:
            Self.hasOwnClasses(configuration) ? "are not called; leave the default" : nil
        case .requestCachePolicy:
            Self.wantsOnlyCache(configuration) ? "allows only cached responses, but there is no cache" : nil
        case .identifier:
            configuration.identifier == nil
                ? nil
                : "selects a background session, which is not supported; for requests that outlive the process, "
                    + "use `SessionManager.background(queue:)` of the library OfflineQueue"
        case .timeoutIntervalForRequest: Self.refusal(ofTimeout: configuration.timeoutIntervalForRequest)
        case .timeoutIntervalForResource: Self.refusal(ofTimeout: configuration.timeoutIntervalForResource)
        default: nil
        }
    }

    private static func refusal(ofTimeout seconds: TimeInterval) -> String? {
        seconds >= 0 ? nil : "is \(seconds); accepted: a positive number of seconds, or 0 for the default"
    }

    private static func hasOwnClasses(_ configuration: URLSessionConfiguration) -> Bool {
        let standard = (URLSessionConfiguration.default.protocolClasses ?? []).map(ObjectIdentifier.init)
        let own = (configuration.protocolClasses ?? []).map(ObjectIdentifier.init)
        return !Set(own).isSubset(of: standard)
    }

    private static func wantsOnlyCache(_ configuration: URLSessionConfiguration) -> Bool {
        configuration.requestCachePolicy == .returnCacheDataDontLoad
    }
}

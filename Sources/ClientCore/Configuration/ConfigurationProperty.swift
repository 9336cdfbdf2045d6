internal import Foundation
internal import FoundationNetworking

/// The properties of a `URLSessionConfiguration` on Linux, and how netwatch treats each.
///
/// A property is ignored if that is harmless. It is refused if ignoring it would send data to a destination, or
/// by a route, that the program has ruled out.
enum ConfigurationProperty: String, CaseIterable, Sendable {
    // Used. Refused only if the value is invalid.
    case httpAdditionalHeaders
    case timeoutIntervalForRequest
    case timeoutIntervalForResource
    case httpCookieStorage
    case httpCookieAcceptPolicy
    case httpShouldSetCookies
    case httpMaximumConnectionsPerHost

    // Refused, unless the value asks for the existing behaviour.
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

    /// Returns the first refused property with a hint, or `nil` if there is none.
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
            Self.wantsOnlyCache(configuration) ? "is not supported: there is no cache" : nil
        case .identifier:
            configuration.identifier == nil
                ? nil
                : "selects a background session, which is not supported; use the queue for requests that outlive the process"
        case .timeoutIntervalForRequest: Self.refusal(ofTimeout: configuration.timeoutIntervalForRequest)
        case .timeoutIntervalForResource: Self.refusal(ofTimeout: configuration.timeoutIntervalForResource)
        default: nil
        }
    }

    private static func refusal(ofTimeout seconds: TimeInterval) -> String? {
        seconds >= 0 ? nil : "is \(seconds); accepted: 0 for the default, or more seconds"
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

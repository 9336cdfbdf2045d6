internal import Foundation
internal import FoundationNetworking

/// The properties of a `URLSessionConfiguration` on Linux, and how netwatch treats each.
///
/// A property is ignored if that is harmless. It is refused if ignoring it would send data to a destination, or
/// by a route, that the program has ruled out.
enum ConfigurationProperty: String, CaseIterable, Sendable {
    case httpAdditionalHeaders
    case timeoutIntervalForRequest
    case timeoutIntervalForResource
    case httpCookieStorage
    case httpCookieAcceptPolicy
    case httpShouldSetCookies
    case connectionProxyDictionary
    case allowsCellularAccess
    case protocolClasses
    case requestCachePolicy
    case identifier
    case networkServiceType
    case isDiscretionary
    case sharedContainerIdentifier
    case shouldUseExtendedBackgroundIdleMode
    case httpShouldUsePipelining
    case httpMaximumConnectionsPerHost
    case urlCredentialStorage
    case urlCache

    enum Treatment: Equatable, Sendable {
        /// Used. Refused only if the value is invalid.
        case honoured
        /// No effect, whatever the value.
        case ignored
        /// Refused, unless the value asks for the existing behaviour.
        case refused
    }

    var treatment: Treatment {
        switch self {
        case .httpAdditionalHeaders, .timeoutIntervalForRequest, .timeoutIntervalForResource,
            .httpCookieStorage, .httpCookieAcceptPolicy, .httpShouldSetCookies,
            .httpMaximumConnectionsPerHost:
            .honoured
        case .connectionProxyDictionary, .allowsCellularAccess, .protocolClasses, .requestCachePolicy,
            .identifier:
            .refused
        case .networkServiceType, .isDiscretionary, .sharedContainerIdentifier,
            .shouldUseExtendedBackgroundIdleMode, .httpShouldUsePipelining, .urlCredentialStorage, .urlCache:
            .ignored
        }
    }

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
            configuration.allowsCellularAccess ? nil : "cannot be kept to; leave it true"
        case .protocolClasses:
            Self.hasOwnClasses(configuration) ? "are not asked; leave it as it is" : nil
        case .requestCachePolicy:
            Self.wantsOnlyCache(configuration) ? "cannot be kept to, there is no cache" : nil
        case .identifier:
            configuration.identifier == nil
                ? nil : "asks for a background session; a queue keeps requests beyond the process"
        case .timeoutIntervalForRequest: Self.refusal(ofTimeout: configuration.timeoutIntervalForRequest)
        case .timeoutIntervalForResource: Self.refusal(ofTimeout: configuration.timeoutIntervalForResource)
        default: nil
        }
    }

    private static func refusal(ofTimeout seconds: TimeInterval) -> String? {
        seconds >= 0 ? nil : "is \(seconds); accepted: seconds from 0, which stands for the default"
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

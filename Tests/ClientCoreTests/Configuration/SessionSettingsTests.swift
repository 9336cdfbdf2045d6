internal import Foundation
internal import FoundationNetworking
internal import Testing

@testable internal import ClientCore

/// The settings that a session takes from a configuration.
@Suite struct SessionSettingsTests {
    private let configuration = URLSessionConfiguration.ephemeral

    private func settings() -> SessionSettings { SessionSettings(configuration) }

    @Test func `an unchanged configuration has Foundation's defaults`() {
        let settings = settings()
        #expect(settings.headers.isEmpty)
        #expect(settings.idleTimeout == .seconds(60))
        #expect(settings.totalTimeout == .seconds(604_800))
        #expect(settings.cookies != nil)
        #expect(settings.sendsCookies)
        #expect(settings.refusal == nil)
    }

    @Test func `header values are converted to text`() {
        configuration.httpAdditionalHeaders = ["DNT": "1", "X-Int": 5, "X-Bool": true, 7: "no", "x-int": 6]
        #expect(settings().headers == ["DNT": "1", "X-Bool": "true", "x-int": "6"])
    }

    @Test(arguments: [
        (0.5, Duration.milliseconds(500)), (90, .seconds(90)), (0, .seconds(60)),
        (.infinity, .seconds(Int32.max)), (1e300, .seconds(Int32.max)),
    ])
    func `a timeout is converted to a duration`(interval: TimeInterval, expected: Duration) {
        configuration.timeoutIntervalForRequest = interval
        #expect(settings().idleTimeout == expected)
    }

    @Test func `a total timeout is converted to a duration`() {
        configuration.timeoutIntervalForResource = 3
        #expect(settings().totalTimeout == .seconds(3))
        configuration.timeoutIntervalForResource = 0
        #expect(settings().totalTimeout == .seconds(604_800))
    }

    @Test(arguments: [-1, -.infinity, .nan] as [TimeInterval])
    func `an invalid timeout is refused by name`(interval: TimeInterval) {
        let accepted = "is \(interval); accepted: a positive number of seconds, or 0 for the default"
        configuration.timeoutIntervalForRequest = interval
        #expect(settings().refusal == "`timeoutIntervalForRequest` \(accepted)")
        configuration.timeoutIntervalForRequest = 60
        configuration.timeoutIntervalForResource = interval
        #expect(settings().refusal == "`timeoutIntervalForResource` \(accepted)")
    }

    @Test(arguments: [
        (60, Duration.seconds(20)), (5, .seconds(5)), (0, .seconds(20)), (.infinity, .seconds(Int32.max)),
    ])
    func `a request's own timeout is used unless it is the default`(own: TimeInterval, expected: Duration)
        throws
    {
        configuration.timeoutIntervalForRequest = 20
        var request = URLRequest(url: try #require(URL(string: "http://a/")))
        request.timeoutInterval = own
        #expect(settings().idleTimeout(of: request) == expected)
    }

    @Test func `later changes to the configuration have no effect`() {
        let settings = settings()
        configuration.httpAdditionalHeaders = ["A": "b"]
        configuration.timeoutIntervalForRequest = 1
        configuration.httpShouldSetCookies = false
        #expect(settings.headers.isEmpty)
        #expect(settings.idleTimeout == .seconds(60))
        #expect(settings.sendsCookies)
    }

    @Test func `the configuration decides whether cookies are stored and sent`() throws {
        configuration.httpCookieAcceptPolicy = .always
        configuration.httpShouldSetCookies = false
        let settings = settings()
        let url = try #require(URL(string: "http://example.org/"))
        settings.cookies?.store(["a=b"], from: url, mainDocumentURL: URL(string: "http://other.org/"))
        #expect(configuration.httpCookieStorage?.cookies?.map(\.name) == ["a"])
        #expect(!settings.sendsCookies)
        configuration.httpCookieStorage = nil
        #expect(self.settings().cookies == nil)
    }

    @Test func `default configurations share cookies in memory, not Foundation's file`() throws {
        let url = try #require(URL(string: "http://memory.example/"))
        SessionSettings(.default).cookies?.store(["a=b; Max-Age=600"], from: url, mainDocumentURL: nil)
        let settings = SessionSettings(.default)
        #expect(settings.cookies?.field(for: url) == "a=b")
        #expect(HTTPCookieStorage.shared.cookies?.contains { $0.domain == "memory.example" } != true)
        let storage = try #require(SessionManager().cookieStorage)
        #expect(storage === SessionManager.default.cookieStorage)
        #expect(storage !== SessionManager(configuration: configuration).cookieStorage)
        for cookie in storage.cookies ?? [] where cookie.domain == "memory.example" {
            storage.deleteCookie(cookie)
        }
        #expect(settings.cookies?.field(for: url) == nil)
    }

    @Test func `ephemeral sessions share no cookies`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        settings().cookies?.store(["a=b"], from: url, mainDocumentURL: nil)
        #expect(settings().cookies?.field(for: url) == "a=b")
        #expect(SessionSettings(.ephemeral).cookies?.field(for: url) == nil)
    }

    // MARK: Properties

    @Test func `the error names the refused property`() {
        let demands: [(ConfigurationProperty, (URLSessionConfiguration) -> Void)] = [
            (.connectionProxyDictionary, { $0.connectionProxyDictionary = ["HTTPEnable": 1] }),
            (.allowsCellularAccess, { $0.allowsCellularAccess = false }),
            (.protocolClasses, { $0.protocolClasses = [InterceptingProtocol.self] }),
            (.requestCachePolicy, { $0.requestCachePolicy = .returnCacheDataDontLoad }),
            (.identifier, { $0.identifier = "background" }),
        ]
        for (property, demand) in demands {
            let configuration = URLSessionConfiguration.ephemeral
            demand(configuration)
            let refusal = SessionSettings(configuration).refusal
            #expect(refusal?.hasPrefix("`\(property.rawValue)` ") == true)
        }
        let refused = ConfigurationProperty.allCases.filter { $0.treatment == .refused }
        #expect(Set(refused) == Set(demands.map(\.0)))
    }

    @Test func `a refused property with its default value is accepted`() {
        configuration.connectionProxyDictionary = [:]
        configuration.protocolClasses = []
        configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        #expect(settings().refusal == nil)
    }

    @Test func `ignored properties are accepted`() {
        configuration.networkServiceType = .background
        configuration.isDiscretionary = true
        configuration.httpMaximumConnectionsPerHost = 1
        configuration.urlCredentialStorage = nil
        configuration.urlCache = nil
        #expect(settings().refusal == nil)
    }

    /// Compares the table with Foundation's documented properties, which are listed by key path. If Foundation removes
    /// a property, this test does not compile. It does not detect new properties.
    @Test func `every property of a configuration is in the table`() {
        let paths: [ConfigurationProperty: PartialKeyPath<URLSessionConfiguration>] = [
            .identifier: \.identifier,
            .requestCachePolicy: \.requestCachePolicy,
            .timeoutIntervalForRequest: \.timeoutIntervalForRequest,
            .timeoutIntervalForResource: \.timeoutIntervalForResource,
            .networkServiceType: \.networkServiceType,
            .allowsCellularAccess: \.allowsCellularAccess,
            .isDiscretionary: \.isDiscretionary,
            .sharedContainerIdentifier: \.sharedContainerIdentifier,
            .connectionProxyDictionary: \.connectionProxyDictionary,
            .httpShouldSetCookies: \.httpShouldSetCookies,
            .httpCookieAcceptPolicy: \.httpCookieAcceptPolicy,
            .httpAdditionalHeaders: \.httpAdditionalHeaders,
            .httpMaximumConnectionsPerHost: \.httpMaximumConnectionsPerHost,
            .httpCookieStorage: \.httpCookieStorage,
            .urlCredentialStorage: \.urlCredentialStorage,
            .urlCache: \.urlCache,
            .protocolClasses: \.protocolClasses,
        ]
        // Not listed by key path, because these properties are deprecated and would cause warnings.
        let unnamed: [ConfigurationProperty] = [
            .httpShouldUsePipelining, .shouldUseExtendedBackgroundIdleMode,
        ]
        #expect(Set(paths.keys).union(unnamed) == Set(ConfigurationProperty.allCases))
        #expect(Set(paths.values).count == paths.count)
    }
}

private final class InterceptingProtocol: URLProtocol {}

extension ConfigurationProperty {
    fileprivate enum Treatment: Equatable, Sendable {
        /// The property is used. Only invalid values are refused.
        case honoured
        /// The property has no effect, whatever its value.
        case ignored
        /// The property is refused, unless its value asks for what the client does anyway.
        case refused
    }

    fileprivate var treatment: Treatment {
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
}

internal import Foundation
internal import NetwatchEventLoop
internal import NetworkReachability

/// The response of a captive portal's API (RFC 8908 §5).
struct CaptivePortalState: Hashable, Sendable {
    /// Why a response is invalid.
    struct Malformed: Error, Hashable, CustomStringConvertible {
        let description: String
    }

    static let mediaType = "application/captive+json"

    let isCaptive: Bool
    let portal: CaptivePortal

    /// Parses a response.
    ///
    /// - Parameters:
    ///   - mediaType: The response's `Content-Type`.
    ///   - body: The response's body, which must be JSON.
    /// - Throws: ``Malformed`` if the type is not ``mediaType``, if the body is not a JSON object, or if its key
    ///   `captive` is missing or not a Boolean.
    init(mediaType: String?, body: Data) throws(Malformed) {
        guard Self.isOurs(mediaType) else {
            let found = mediaType.map { "`\($0.printable(upTo: ProbeExchange.longestText))`" } ?? "missing"
            throw Malformed(description: "the content type is \(found); \(Self.mediaType) is required")
        }
        do {
            let keys = try JSONDecoder().decode(Keys.self, from: body)
            isCaptive = keys.isCaptive
            portal = keys.portal
        } catch {
            throw Malformed(description: "the response is not a JSON object with a Boolean `captive`")
        }
    }

    /// Returns whether a media type equals ``mediaType``; parameters and case are ignored (RFC 9110 §8.3.1).
    private static func isOurs(_ mediaType: String?) -> Bool {
        let type = mediaType?.prefix { $0 != ";" } ?? ""
        return type.trimmingCharacters(in: .whitespaces).lowercased() == Self.mediaType
    }

    private struct Keys: Decodable {
        enum CodingKeys: String, CodingKey {
            case captive
            case userPortalURL = "user-portal-url"
            case venueInfoURL = "venue-info-url"
            case canExtendSession = "can-extend-session"
            case secondsRemaining = "seconds-remaining"
            case bytesRemaining = "bytes-remaining"
        }

        let isCaptive: Bool
        let portal: CaptivePortal

        init(from decoder: any Decoder) throws {
            let values = try decoder.container(keyedBy: CodingKeys.self)
            isCaptive = try values.decode(Bool.self, forKey: .captive)
            var portal = CaptivePortal()
            portal.userPortalURL = Self.url(.userPortalURL, in: values, schemes: ["https"])
            portal.venueInfoURL = Self.url(.venueInfoURL, in: values, schemes: ["http", "https"])
            portal.canExtendSession = try? values.decode(Bool.self, forKey: .canExtendSession)
            portal.secondsRemaining = try? values.decode(UInt64.self, forKey: .secondsRemaining)
            portal.bytesRemaining = try? values.decode(UInt64.self, forKey: .bytesRemaining)
            self.portal = portal
        }

        private static func url(
            _ key: CodingKeys,
            in values: KeyedDecodingContainer<CodingKeys>,
            schemes: [String]
        ) -> String? {
            (try? values.decode(String.self, forKey: key))
                .flatMap { ProbeURL.opened(by: $0, from: nil, schemes: schemes) }
        }
    }
}

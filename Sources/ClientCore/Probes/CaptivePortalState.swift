internal import Foundation
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

    /// - Parameters:
    ///   - mediaType: The response's `Content-Type`.
    ///   - body: The JSON.
    /// - Throws: ``Malformed`` for another type, for a body that is not a JSON object, and if `captive` is
    ///   missing or not a boolean.
    init(mediaType: String?, body: Data) throws(Malformed) {
        guard Self.isOurs(mediaType) else {
            let found = mediaType.map { "`\($0.printable)`" } ?? "without a type"
            throw Malformed(description: "the response is \(found), not \(Self.mediaType)")
        }
        do {
            let keys = try JSONDecoder().decode(Keys.self, from: body)
            isCaptive = keys.isCaptive
            portal = keys.portal
        } catch {
            throw Malformed(description: "the response is not a JSON object with a Boolean `captive`")
        }
    }

    /// Whether the media type is the API's, ignoring parameters and case (RFC 9110 §8.3.1).
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

internal import Foundation
internal import NetworkReachability

/// The characters of the hosts of URLs.
enum HostText {
    /// Returns whether a host contains only characters that a name or an address can contain.
    ///
    /// An international name must be written as `xn--…`. An IPv6 address contains colons, and may have a zone after `%`.
    static func isValid(_ host: String) -> Bool {
        host.unicodeScalars.allSatisfy { scalar in
            scalar.isASCII
                && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)
                    || "-._:%".unicodeScalars.contains(scalar))
        }
    }

    /// Returns whether a host is neither a name nor a complete address, but a number or an address such as `127.1`.
    /// libcurl would send the request to an address that the caller may not have meant.
    static func isMistypedAddress(_ host: String) -> Bool {
        do throws(InvalidHost) {
            _ = try NetworkHost(validating: host)
            return false
        } catch {
            return error.reason == .mistypedAddress
        }
    }

    /// Creates the error for a text in a configuration that is not a host.
    static func refusal(of text: String) -> QueueError {
        let accepted = "accepted: a name or an address, without a scheme, a port or `*`"
        let advice = InternationalName.advice(for: text) ?? accepted
        return QueueError(.invalidConfiguration, "\(quoted(text)) is not a host; \(advice)")
    }
}

internal import ClientCore
internal import Foundation
internal import NetwatchTransport

/// The requests that a server usually accepts or rejects together: those to one origin with the same credential.
package struct CredentialScope: Hashable, Comparable, Sendable {
    /// The name of the credential; `nil` for requests without one, to which the session may add secrets.
    package let credential: String?
    package let origin: Origin

    package init(credential: String?, origin: Origin) {
        self.credential = credential
        self.origin = origin
    }

    package static func < (left: CredentialScope, right: CredentialScope) -> Bool {
        (left.credential ?? "", "\(left.origin)") < (right.credential ?? "", "\(right.origin)")
    }
}

/// The place of a held request in the order in which held requests are tried: by lane, and then in the order of
/// acceptance.
package struct HeldPlace: Hashable, Comparable, Sendable {
    package let lane: Int64
    package let sequence: Int64

    package init(lane: Int64, sequence: Int64) {
        (self.lane, self.sequence) = (lane, sequence)
    }

    package static func < (left: HeldPlace, right: HeldPlace) -> Bool {
        (left.lane, left.sequence) < (right.lane, right.sequence)
    }
}

/// An order to release requests that are held for `auth`.
package enum HeldRelease: Hashable, Sendable {
    /// One request of a scope, which finds out whether the server accepts the others. `last` is the place of the request
    /// that was released before; the next one follows it, and the first one follows the last one.
    case next(CredentialScope, after: HeldPlace?)
    /// All requests of a scope.
    case all(CredentialScope)
    /// The first request of each of the next lanes, whatever its credential is.
    case lanes(after: Int64)
}

/// What a ``HeldRelease`` released.
package enum ReleasedRequests: Hashable, Sendable {
    /// No request is held that an attempt of this queue has held.
    case none
    /// None was released: the attempt of the request that was released before has not ended, and no other lane has such
    /// requests, or all lanes with such requests are paused.
    case waiting
    /// Requests were released. `last` is the place of the last one.
    case some(last: HeldPlace)
}

/// The name of a credential, to which stored requests refer.
package enum CredentialName {
    /// The maximum length in bytes.
    private static let maximumBytes = 64

    /// Refuses a name that is not 1 to 64 letters, digits, `.`, `_` and `-`.
    ///
    /// A name is also the name of a file, so it must not be `.` or `..`. Hidden files are excluded, too.
    ///
    /// - Throws: ``QueueError`` with `invalidOption`.
    package static func check(_ name: String) throws(QueueError) {
        guard isValid(name) else {
            // A user may have entered a URL instead.
            let shown = quoted(RedactedURL.text(of: name))
            throw QueueError(
                .invalidOption,
                "the credential name \(shown) is not valid (accepted: 1 to \(maximumBytes) ASCII letters, "
                    + "digits, `.`, `_` and `-`, and no leading `.`)"
            )
        }
    }

    package static func isValid(_ name: String) -> Bool {
        (1...maximumBytes).contains(name.utf8.count) && !name.hasPrefix(".")
            && name.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_") || byte == UInt8(ascii: "-")
                }
            }
    }
}

/// Removes secrets from a request before it is stored. The request's credential replaces them at each attempt.
package enum SecretRemoval {
    /// The end of the message about a request that contains a secret.
    static let hint =
        "the queue stores no secrets; name a credential that each attempt adds (`credential`, `--credential`)"

    /// Returns the request without secret header fields, without user name and password in its URL, and without secret
    /// query items.
    static func apply(to request: QueueRequest) -> QueueRequest {
        var request = request
        request.headers.removeAll { SecretHeaderFields.request.contains($0.name.lowercased()) }
        request.url = SecretQueryItems.removing(from: URL.removingUserInfo(from: request.url))
        return request
    }
}
